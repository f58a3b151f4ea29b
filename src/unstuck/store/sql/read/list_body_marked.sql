-- Up to :most jobs of which an old body may live, of all tenants, in no order.
SELECT job AS number FROM unstuck_body_marks LIMIT :most
