# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads from a Spark event log which executors ran the tasks and how deep the tree of stages is, and
checks that the tasks of a killed executor ran again."""

import json
from dataclasses import dataclass, field


class EventLogError(Exception):
    pass


@dataclass
class EventLog:
    removed: dict = field(default_factory=dict)  # executor -> reason
    parents: dict = field(default_factory=dict)  # stage -> its parent stages
    ends: list = field(default_factory=list)     # (stage, partition, executor, reason)


def read(lines):
    log = EventLog()
    for line in lines:
        event = json.loads(line)
        name = event["Event"]
        if name == "SparkListenerExecutorRemoved":
            log.removed[event["Executor ID"]] = event["Removed Reason"]
        elif name == "SparkListenerJobStart":
            for stage in event["Stage Infos"]:
                log.parents[stage["Stage ID"]] = stage["Parent IDs"]
        elif name == "SparkListenerTaskEnd":
            info = event["Task Info"]
            log.ends.append((event["Stage ID"], info.get("Partition ID", info["Index"]), info["Executor ID"],
                             event["Task End Reason"]["Reason"]))
    return log


def shares(log):
    """Returns {executor: share of the finished tasks}."""
    done = [end[2] for end in log.ends if end[3] == "Success"]
    return {executor: done.count(executor) / len(done) for executor in set(done)}


def depth(log):
    """Returns the length of the longest chain of stages in which each stage needs the previous
    one."""

    def chain(stage):
        return 1 + max((chain(parent) for parent in log.parents[stage]), default=0)

    return max(map(chain, log.parents), default=0)


def lost_tasks(log, executor):
    """Returns {(stage, partition)} of the tasks that have to run again after the executor has
    ended: those that it was running, and those whose results were lost with it."""
    return {end[:2] for end in log.ends
            if end[2] == executor and end[3] in ("ExecutorLostFailure", "Resubmitted")}


def check(log, killed, survivor, minimum_share=0.3, minimum_depth=3):
    """Raises EventLogError unless the log shows a distributed run that outlived the killed
    executor. Returns figures of the run."""
    by_executor = shares(log)
    for executor in (killed, survivor):
        if by_executor.get(executor, 0) < minimum_share:
            raise EventLogError(f"executor {executor} ran only {by_executor.get(executor, 0):.0%} of the tasks")
    levels = depth(log)
    if levels < minimum_depth:
        raise EventLogError(f"the tree has a depth of {levels}")
    if killed not in log.removed:
        raise EventLogError(f"executor {killed} was not removed")
    lost = lost_tasks(log, killed)
    if not lost:
        raise EventLogError(f"executor {killed} lost no task")
    for task in sorted(lost):
        if not any(end[:2] == task and end[2] != killed and end[3] == "Success" for end in log.ends):
            raise EventLogError(f"stage {task[0]}, partition {task[1]}: not run again after executor {killed}")
    return {"shares": by_executor, "depth": levels, "n_tasks": sum(end[3] == "Success" for end in log.ends),
            "n_lost": len(lost)}
