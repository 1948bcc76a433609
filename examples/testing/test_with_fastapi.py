"""A FastAPI application that produces: the whole of it, from the HTTP request to the record in the topic."""

from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer
from fastapi import FastAPI
from fastapi.testclient import TestClient


def make_app(bootstrap_servers: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI):
        async with AIOKafkaProducer(bootstrap_servers=bootstrap_servers) as producer:
            app.state.producer = producer
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders/{number}", status_code=201)
    async def order(number: int):
        await app.state.producer.send_and_wait("orders", b"%d" % number)

    return app


@pytest.fixture
def client(fresh_odradek_broker):
    with TestClient(make_app(fresh_odradek_broker.bootstrap)) as client:
        yield client


def test_an_order_becomes_a_record(client, fresh_odradek_broker):
    assert client.post("/orders/7").status_code == 201

    assert [record.value for record in fresh_odradek_broker.records("orders")] == [b"7"]


def test_an_order_is_taken_although_the_broker_is_slow_to_lead(client, fresh_odradek_broker):
    fresh_odradek_broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)

    assert client.post("/orders/8").status_code == 201
