-- In which condition a file is.

-- name: file_pages
SELECT (SELECT page_count FROM pragma_page_count()) AS pages,
       (SELECT freelist_count FROM pragma_freelist_count()) AS free_pages,
       (SELECT page_size FROM pragma_page_size()) AS page_size
