INSERT INTO notes (id, text) VALUES (:id, :text)
