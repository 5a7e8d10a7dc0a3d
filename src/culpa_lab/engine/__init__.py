"""The serving engine around the model: scheduler, cache, pipeline stages, device, execution and server."""
