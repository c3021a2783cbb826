"""A job of Ray Data: paths → actors → lines, each in a process of its own. One stage, because tensors that go from a stage of
decoding to one of inference are copied through the object store."""

import ray

import job


def classify(args, actor):
    ray.init(num_cpus=args.processes, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    names = job.paths(args.folder)
    blocks = max(args.processes, len(names) // max(args.batch, 16))
    rows = ray.data.from_items(names, override_num_blocks=blocks).map_batches(
        actor, fn_constructor_args=(args.model.resolve(), args.threads, args.draft), batch_size=args.batch,
        concurrency=args.processes, num_cpus=1,
    )
    with args.out.open("w") as out:
        for batch in rows.iter_batches(batch_size=None, prefetch_batches=1):
            job.put(out, batch["uri"], batch["logits"])
    ray.shutdown()
