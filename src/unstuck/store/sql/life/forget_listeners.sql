-- What listeners left behind that were killed: their time is long over, so nobody is notified for them any more.
DELETE FROM unstuck_idle
 WHERE until <= (SELECT unstuck_now() - :age)
   AND listener IN (SELECT listener FROM unstuck_idle WHERE until <= (SELECT unstuck_now() - :age) LIMIT :batch)
