UPDATE notes SET text = :text WHERE id = :id
