"""`gateway_metadata`: a provider sends the metadata; a requirer reads them, or null."""

from charmlibs.interfaces.gateway_metadata import (
    GatewayMetadata,
    GatewayMetadataProvider,
    GatewayMetadataRequirer,
)

from wire.hook import Side, run


def provide(_charm, library, _relation, send):
    """Publishes metadata."""
    library.publish_metadata(GatewayMetadata.model_validate(send))


def require(_charm, library, _relation, _send):
    """Reads metadata."""
    metadata = library.get_metadata()
    if metadata is None and library.is_ready:
        raise ValueError("the library has no metadata though there are some")
    return metadata and metadata.model_dump(mode="json")


SIDES = {
    "provider": Side(lambda charm, name, _: GatewayMetadataProvider(charm, name), provide),
    "requirer": Side(lambda charm, name, _: GatewayMetadataRequirer(charm, name), require),
}


def answer(ask):
    """Answers a question as `hook` has it."""
    return run("gateway-metadata", "gateway_metadata", SIDES[ask["side"]], ask)
