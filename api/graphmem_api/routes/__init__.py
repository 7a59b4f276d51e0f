"""The routes, one module per capability; importing it registers the convertor for ids in their paths."""

from starlette.convertors import register_url_convertor

from graphmem_api.middleware import SEGMENT_CONVERTOR, EncodedSegmentConvertor

register_url_convertor(SEGMENT_CONVERTOR, EncodedSegmentConvertor())
