-- A small shop, made of nothing: recursive queries invent customers, products, orders and their lines, then the shop is
-- indexed, reported on, changed and cleaned up. Deterministic: no clock, no random(), so every run allocates the same.
-- Run it as: sqlite3 :memory: < work.sql
PRAGMA cache_size = -16000;
PRAGMA temp_store = MEMORY;

CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, joined TEXT, notes TEXT);
CREATE TABLE product(id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind TEXT, cents INTEGER, details TEXT);
CREATE TABLE purchase(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, day TEXT, state TEXT);
CREATE TABLE line(purchase INTEGER, nr INTEGER, product INTEGER, amount INTEGER, PRIMARY KEY(purchase, nr)) WITHOUT ROWID;

BEGIN;
-- A multiplicative generator (Lehmer) stands in for chance.
INSERT INTO customer
WITH RECURSIVE n(i, r) AS (SELECT 1, 16807 UNION ALL SELECT i + 1, r * 48271 % 2147483647 FROM n WHERE i < 8000)
SELECT i, 'Customer ' || printf('%06x', r % 16777216),
       CASE r % 5 WHEN 0 THEN 'Aarhus' WHEN 1 THEN 'Bruges' WHEN 2 THEN 'Coimbra' WHEN 3 THEN 'Delft' ELSE 'Evora' END,
       date('2020-01-01', '+' || (r % 2000) || ' days'),
       CASE WHEN r % 3 = 0 THEN replace(hex(zeroblob(40 + r % 400)), '00', char(97 + r % 26)) END
FROM n;

INSERT INTO product
WITH RECURSIVE n(i, r) AS (SELECT 1, 69621 UNION ALL SELECT i + 1, r * 48271 % 2147483647 FROM n WHERE i < 2000)
SELECT i, 'Product ' || i, 'kind ' || (r % 40), 50 + r % 20000,
       json_object('weight', r % 900, 'size', json_array(r % 7, r % 11, r % 13), 'text', printf('%.*c', 30 + r % 200, 'x'))
FROM n;

INSERT INTO purchase
WITH RECURSIVE n(i, r) AS (SELECT 1, 40692 UNION ALL SELECT i + 1, r * 48271 % 2147483647 FROM n WHERE i < 40000)
SELECT i, 1 + r % 8000, date('2022-01-01', '+' || (r % 900) || ' days'),
       CASE r % 10 WHEN 0 THEN 'open' WHEN 1 THEN 'returned' ELSE 'paid' END
FROM n;

INSERT INTO line
WITH RECURSIVE n(i, r) AS (SELECT 0, 39373 UNION ALL SELECT i + 1, r * 48271 % 2147483647 FROM n WHERE i < 119999)
SELECT 1 + i / 3, i % 3, 1 + r % 2000, 1 + r % 9 FROM n;
COMMIT;

CREATE INDEX customer_city ON customer(city, joined);
CREATE INDEX purchase_customer ON purchase(customer, day);
CREATE INDEX line_product ON line(product);
ANALYZE;

-- Reports: sorting, grouping, window functions, text and JSON.
SELECT city, count(*), sum(amount * cents) FROM customer JOIN purchase ON customer.id = customer
JOIN line ON purchase.id = purchase JOIN product ON product.id = product GROUP BY city ORDER BY city;

SELECT count(*), sum(length(basket)) FROM
    (SELECT purchase, group_concat(name, ', ') AS basket FROM line JOIN product ON product.id = product GROUP BY purchase);

SELECT count(*), max(place) FROM
    (SELECT customer, rank() OVER (PARTITION BY substr(day, 1, 7) ORDER BY count(*) DESC) AS place
     FROM purchase GROUP BY customer, substr(day, 1, 7));

SELECT kind, sum(json_extract(details, '$.weight')), sum(json_array_length(details, '$.size')),
       max(length(json_set(details, '$.kind', kind))) FROM product GROUP BY kind ORDER BY kind LIMIT 5;

CREATE TEMP TABLE letter AS
SELECT purchase.id AS id, upper(name) || ', ' || city || ': ' || printf('%s of %s, %d lines', state, day, count(*)) AS text
FROM purchase JOIN customer ON customer.id = customer JOIN line ON purchase = purchase.id GROUP BY purchase.id;
SELECT count(DISTINCT text), sum(length(replace(text, 'paid', 'settled'))) FROM letter;

-- The year's end: changes, a search that nothing helps, and what stays in memory.
UPDATE purchase SET state = 'settled' WHERE state = 'paid' AND day < '2023-01-01';
DELETE FROM line WHERE purchase IN (SELECT id FROM purchase WHERE state = 'returned');
SELECT count(*) FROM customer WHERE notes LIKE '%qq%' OR name GLOB '*ff*';
SELECT state, count(*) FROM purchase GROUP BY state ORDER BY state;
