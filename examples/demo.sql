-- Orders come in as Avro; what is dear goes out as Avro, with the docs of the source's schema.
CREATE SOURCE orders
FROM KAFKA CONNECTION kafka (TOPIC 'orders')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;

CREATE VIEW dear AS
SELECT id, upper(item) AS item, price FROM orders WHERE price > 50;

CREATE SINK dear_orders FROM dear
INTO KAFKA CONNECTION kafka (TOPIC 'dear-orders')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry;

CREATE SOURCE dear_orders
FROM KAFKA CONNECTION kafka (TOPIC 'dear-orders')
FORMAT AVRO USING CONFLUENT SCHEMA REGISTRY CONNECTION registry
INCLUDE OFFSET;
