-- What the row says becomes so. As its owner, because a role that may write rows need not be one that may replace functions.
CREATE OR REPLACE FUNCTION unstuck_keep_time() RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    wanted BIGINT := (SELECT ahead FROM unstuck_clock);
BEGIN
    EXECUTE format('CREATE OR REPLACE FUNCTION unstuck_ahead() RETURNS BIGINT LANGUAGE sql VOLATILE AS %L',
                   format('SELECT CAST(%s AS BIGINT)', wanted));
    RETURN wanted;
END
$$;
