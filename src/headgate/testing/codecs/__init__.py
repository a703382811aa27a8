"""Records of topics as JSON, in the notation of specs, and back.

In: a JSON value and a format, or bytes. Out: bytes, or the JSON value. ``record`` chooses by format and frame;
``avro`` and ``protobuf`` know one schema each; ``moments`` are dates and times in ISO form. They are codecs of their
own, apart from those of ``runtime``, so that a spec checks the engine against somebody else's reading.
"""
