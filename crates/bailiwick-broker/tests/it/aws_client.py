"""Requests of several kinds, each signed with what the environment has: python3 aws_client.py ENDPOINT [PROXY [PACKAGES]]"""

import sys

ENDPOINT, PROXY, *PACKAGES = [*sys.argv[1:], ""][:3]
sys.path[:0] = filter(None, PACKAGES)

import boto3  # noqa: E402
from botocore.config import Config  # noqa: E402

config = Config(
    proxies={"https": PROXY} if PROXY else {},
    retries={"max_attempts": 0},
    s3={"addressing_style": "path"},
    region_name="eu-north-1",
)


def client(service):
    return boto3.client(service, endpoint_url=ENDPOINT, config=config)


s3 = client("s3")
s3.put_object(Bucket="bucket", Key="a b/ü+%25?.txt", Body=b"some text", Metadata={"own": "x  y"})
s3.head_object(Bucket="bucket", Key="deep//twice/./dots/../x")
s3.list_objects_v2(Bucket="bucket", Prefix="a b&c=d", MaxKeys=3)
print(client("sts").get_caller_identity()["Arn"])
