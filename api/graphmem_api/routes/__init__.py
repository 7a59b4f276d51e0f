"""The routes, one module for each family; the ids in their paths are read by the convertor that is registered here."""

from starlette.convertors import register_url_convertor

from graphmem_api.middleware import SEGMENT_CONVERTOR, EncodedSegmentConvertor

register_url_convertor(SEGMENT_CONVERTOR, EncodedSegmentConvertor())
