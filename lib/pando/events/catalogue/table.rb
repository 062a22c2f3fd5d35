# frozen_string_literal: true

module Pando
  module Events
    # The rows. A new event is added here and in docs/events.md.
    module Catalogue
      define "monitor.listening", :info, %i[pid listen workers nodes],
             "The server listens and begins to load the application."
      define "server.ready", :info, %i[pid workers nodes seconds environment url listen],
             "The application is loaded and every worker is ready; `seconds` since the start. Once for each start."
      define "monitor.stopping", :info, %i[pid reason seconds status],
             "The server was told to stop, or gives up: then `status` is 1, and the level error. A process " \
             "that has not ended after `seconds` is killed.", failed: true
      define "server.failing", :error, %i[reason seconds],
             "Nobody serves any more, and the first try to mend that has failed; the server goes on trying, and ends " \
             "itself after `seconds` if `give_up after:` is set. Once, until somebody serves again."
      define "monitor.stopped", :info, %i[pid status], "No child is left; the monitor exits with this status."
      define "drain.started", :info, %i[reason seconds],
             "Health checks fail, all else is served as ever; a stop follows after `seconds`, if there are any."
      define "drain.ended", :info, %i[reason], "The server is in rotation again: health checks succeed."
      define "monitor.starved", :error, %i[reason],
             "The kernel had no memory or descriptor for the monitor; it tries again."
      define "monitor.stalled", :warn, %i[seconds processor],
             "One turn of the monitor's loop took so long, `processor` seconds of them on a CPU; nobody was heard " \
             "meanwhile. If the server was stopped or its container frozen, deadlines are moved by the time."
      define "monitor.upgrading", :info, %i[pid from to seconds],
             "The Pando that the monitor is to run has been tried (`seconds` with all waits), and takes over now."
      define "monitor.upgraded", :info, %i[pid from to seconds],
             "The monitor runs another Pando; `seconds` is how long it heard nobody."
      define "upgrade.started", :info, %i[from reason], "Another Pando is to take the monitor's place."
      define "upgrade.failed", :error, %i[from reason backtrace],
             "The monitor runs the Pando that it did; the backtrace is what the other one complained of."
      define "upgrade.incomplete", :warn, %i[settings],
             "The configuration in the folder says something else of these; a reload takes it over."
      define "environment.contradictory", :warn, %i[environment reason],
             "RAILS_ENV, RACK_ENV and APP_ENV name different environments; the first one that is set decides."
      define "listener.opened", :info, %i[listen inherited],
             "A listening socket is bound and listens; `inherited`: a service manager had opened it."
      define "listener.closed", :info, %i[listen],
             "A reload has taken a listening socket out; whoever had connected is answered still."
      define "listener.unused", :warn, %i[listen name reason],
             "A socket was handed to the server that it does not serve."
      define "listener.failed", :warn, %i[listen reason], "Another option of a listening socket could not be set."
      define "control.unavailable", :warn, %i[reason advice],
             "There is no control socket; `pando status` cannot ask. `reason` has the pid of another server of the " \
             "same folder that has it."
      define "control.failed", :error, %i[reason backtrace], "A command of the control socket raised in the monitor."
      define "setting.ignored", :warn, %i[name reason advice],
             "A file or an environment variable that another server would follow has no effect; `advice` says what has."
      define "setting.followed", :info, %i[name reason],
             "An environment variable that was made for another server has an effect here."
      define "workers.scaled", :info, %i[from to reason], "The wanted number of workers changed."
      define "pool.failing", :error, %i[reason],
             "Of several kinds of worker one has nobody left who serves, and cannot be booted; the others serve on, " \
             "and it is tried again."

      define "restart.throttled", :error, %i[role slot name generation rate seconds reason],
             "Something dies or fails to start again and again (`rate` times within the last minute): the next try " \
             "waits this long."
      define "restart.recovered", :info, %i[role slot name generation], "It has been quiet for long enough."
      define "memory.short", :warn, %i[reason], "Memory is short; the fattest worker is replaced."
      define "memory.recovered", :info, %i[], "There is enough memory again."

      define "mold.booting", :info, %i[generation pid reason], "A process loads the app from cold."
      define "mold.ready", :info, %i[generation pid], "A mold reported that it can fork workers."
      define "mold.exited", :info, %i[generation pid reason], "A mold that was told to leave is gone."
      define "mold.failed", :error, %i[generation pid reason backtrace],
             "A mold never became ready; its generation is discarded."
      define "mold.discarded", :info, %i[generation pid reason],
             "A mold was ended because its generation failed, and is not used again."
      define "mold.refused", :info, %i[generation pid reason], "A mold was ended, for its workers would lack a thread."
      define "mold.leaving", :info, %i[generation pid reason], "A mold is let go, for what it alone has."
      define "mold.released", :info, %i[generation pid reason], "It is gone; a worker forks another when one is wanted."
      define "mold.retired", :info, %i[generation pid reason], "A mold was ended after its successor proved itself."
      define "mold.killed", :warn, %i[generation pid reason], "The monitor killed a mold."
      define "mold.lost", :error, %i[generation pid reason cause], "A mold died that nobody told to."

      define "worker.spawning", :info, %i[slot generation], "The mold was ordered to fork a worker."
      define "worker.ready", :info, %i[slot generation pid prefaulted prefault_seconds], "A worker takes requests."
      define "worker.leaving", :info, %i[slot generation pid reason cause],
             "A worker takes no more requests and will exit."
      define "worker.exited", :info, %i[slot generation pid requests reason], "A worker that was told to leave is gone."
      define "worker.failed", :error, %i[slot generation pid reason backtrace], "A worker never became ready."
      define "worker.killed", :error, %i[slot generation pid reason request seconds requests],
             "The monitor killed a worker; names the request it was serving, and for how long."
      define "worker.lost", :error, %i[slot generation pid reason cause request seconds requests],
             "A worker died that nobody told to; names the request it was serving, and for how long. `cause` is oom " \
             "where the kernel killed it for memory."
      define "worker.unsafe", :warn, %i[slot generation pid reason],
             "A worker cannot be a mold: the app said so, or a library stands against it."
      define "worker.safe", :info, %i[slot generation pid],
             "Nothing stands any more against a worker's becoming a mold, see `worker.unsafe`."

      define "allocator.loaded", :info, %i[generation pid name version],
             "The application's memory is not the C library's malloc; where it is, nothing is said."

      define "pages.unavailable", :warn, %i[setting reason],
             "The kernel does not do with the application's pages what a setting asks for; it runs all the same."

      define "libraries.checked", :info, %i[fine handled limits_reforking refused unknown],
             "The app is loaded; what a fork does to its libraries. See docs/libraries.md."
      define "library.reported", :warn, %i[library version reason advice],
             "No worker that uses this library as the mold does now is promoted, until you have done what the " \
             "advice says."
      define "library.failed", :warn, %i[library slot generation pid reason],
             "What Pando does for a library around a fork did not work; the fork took place all the same."

      define "reactor.ready", :info, %i[pid], "The reactor accepts connections."
      define "reactor.fallback", :warn, %i[reason],
             "The reactor's own program cannot be run: the reactor is a fork of the monitor, and keeps some MiB of it."
      define "reactor.limited", :warn, %i[connections reason],
             "Fewer connections than `max_connections` can be held."
      define "spool.unavailable", :warn, %i[path reason advice],
             "The reactor has no folder for large request bodies and answers."
      define "spool.in_memory", :warn, %i[path reason], "That folder is a tmpfs, and so takes memory."
      define "spool.failed", :warn, %i[count reason path advice],
             "So many writes to the spool have failed, or reads; `reason` is the last error. It is tried again after " \
             "a second."
      define "reactor.exited", :info, %i[pid reason], "The reactor has answered all that it held, and is gone."
      define "reactor.failed", :error, %i[pid reason], "A reactor never became ready; the next one is on its way."
      define "reactor.stalled", :warn, %i[pid seconds reason],
             "The reactor has stood still for so long because it waits for a disk. It is killed after a minute."
      define "reactor.killed", :error, %i[pid reason connections requests], "The monitor killed the reactor."
      define "reactor.lost", :error, %i[pid reason connections requests],
             "The reactor died; its connections are closed, the next one is on its way."

      GENERATION = %i[generation pid purpose source source_slot].freeze
      private_constant :GENERATION

      define "generation.booting", :info, GENERATION, "A new generation is on its way; its source is promoted, if any."
      define "generation.ready", :info, GENERATION, "The new generation's mold is ready."
      define "generation.canary", :info, GENERATION, "The new generation's first worker is on trial."
      define "generation.rolling", :info, GENERATION, "The other workers are being replaced."
      define "generation.current", :info, [*GENERATION, :seconds], "Every slot runs the new generation."
      define "generation.kept", :info, [*GENERATION, :requests, :seconds, :longest],
             "Its mold is kept while the next generation is watched: until each of its workers has served " \
             "`requests`, for at least `seconds`, at most `longest`."
      define "generation.retired", :info, [*GENERATION, :reason], "No more is forked from an old generation."
      define "generation.discarded", :info, [*GENERATION, :reason],
             "A new generation failed, as an event of level error or warn has said; the old one serves on."

      define "generation.refused", :info, [*GENERATION, :reason],
             "A refork was given up, though nothing failed: the new processes would lack a thread, as " \
             "`finding.reported` has told once, or no worker could be had to fork its mold."

      define "canary.serving", :info, %i[slot generation pid requests seconds longest],
             "A new generation's first worker serves beside the old ones; what it must do."
      define "canary.passed", :info, %i[generation requests seconds],
             "It did as well as those before: the others are replaced."
      define "canary.unproven", :info, %i[generation requests seconds reason replayed],
             "It did not fail, but too few requests came to tell: the others are replaced, and watched. `replayed`: " \
             "what it requested from itself (`rollout safe_paths:`)."
      define "canary.skipped", :info, %i[generation reason],
             "Its first worker came up, and need not prove itself: the others are replaced, and watched."
      define "canary.failed", :error, %i[generation requests seconds reason],
             "It did not: its generation is discarded."

      define "watch.failed", :error, %i[generation requests seconds reason],
             "The new generation serves, but does not do as well as the one before: all workers are replaced from " \
             "the mold that was kept."

      define "refork.started", :info, %i[slot generation source requests reason choice],
             "A worker (`source`, its pid) was chosen to be the next mold; `choice` says by which figures."
      define "source.changed", :info, %i[slot generation source requests reason],
             "The worker that was to be the next mold has not come to it, or must not, as `reason` says; this one is " \
             "asked instead."
      define "trainee.chosen", :info, %i[slot generation pid requests],
             "From now on this worker is given requests before the others while it is idle: the next mold is to be " \
             "forked from it."
      define "jit.enabled", :info, %i[slot generation pid],
             "YJIT is on in the trainee, and nowhere else before the first refork (`jit :trainee`)."
      define "jit.unavailable", :warn, %i[setting reason], "YJIT cannot be enabled as `jit` says."
      define "gc.major_due", :info, %i[slot generation pid cause],
             "Ruby wants a full collection in this worker, which has grown; it is to be replaced when that suits."
      define "gc.major_allowed", :info, %i[slot generation pid],
             "A worker has grown so much that full collections are put off no longer."
      define "gc.deferral_unavailable", :warn, %i[setting reason],
             "Full collections cannot be put off as `gc major:` says; all is as without it."
      define "prefault.prepared", :info, %i[generation pid bytes ranges seconds], "A mold has found its hot set."
      define "prefault.unavailable", :info, %i[generation reason], "New workers are given nothing at their start."

      define "refork.decided", :info, %i[generation decision phase reason rule age saving cost pss],
             "`refork :auto` found it is time (decision: refork), or the app is warm (settle). See docs/reforking.md."
      define "refork.refused", :warn, %i[wanted reason slot source told],
             "A refork is not possible now; `source` and `slot` are the worker that refused to be forked from, if " \
             "one did. The same obstacle is told once, unless somebody asks again. `told`: `finding.reported`, " \
             "`fork.failed`, `spawn.failed` or `mold.failed` has said why; then the level is info."
      define "refork.withheld", :info, %i[wanted reason],
             "A refork was asked for, and no worker may be promoted for a thread that `finding.reported` has told of."
      define "refork.postponed", :info, %i[reason seconds], "A generation failed; the next try waits this long."
      define "refork.suspended", :error, %i[count reason],
             "So many reforks in a row came to nothing: no more until `pando refork --force`, or a reload."
      define "refork.resumed", :info, %i[reason], "Reforking is suspended no more."
      define "refork.finished", :info, %i[generation pid seconds], "All workers come from the new mold."
      define "leak.inherited", :warn, %i[generation bytes requests reason advice],
             "Each request leaves `bytes` in the memory that a mold hands down to the next one, as far as can be " \
             "told after so many `requests`; `advice` says what is done about it. Once for each release. See " \
             "docs/reforking.md."
      define "reboot.started", :info, %i[reason],
             "For such a leak the application boots from cold; it is to take its own place."
      define "reboot.finished", :info, %i[generation seconds from to],
             "It serves for good. `from` and `to` are what its mold takes, in bytes, without files."
      define "reboot.failed", :warn, %i[generation reason seconds],
             "It does not serve, the old generation serves on; the next try is in so many seconds, or later."
      define "reload.started", :info, %i[reason], "The configuration is read anew, and a new release is to boot."
      define "reload.serving", :info, %i[generation seconds reason longest],
             "Every worker runs the new release, and is watched for `longest` seconds at most; then its settings and " \
             "services follow. `reason`: why its canary has proved nothing; absent where it has."
      define "reload.finished", :info, %i[generation seconds],
             "The new release serves for good, with its settings and services."
      define "reload.incomplete", :warn, %i[settings], "These settings have changed, and need a restart."
      define "reload.failed", :error, %i[generation reason advice],
             "The new release does not serve; the old one serves on."
      define "spawn.failed", :error, %i[role slot generation reason], "A process could not be ordered."
      define "fork.failed", :error, %i[role slot generation reason],
             "The kernel, or a before_fork hook, refused a fork; it is tried again later."

      define "check.failed", :info, %i[role slot generation pid step reason backtrace],
             "Belongs to the `worker.failed` or `mold.failed` before it: the step of the self-check that the child " \
             "stood still or failed in, and where its threads stood."
      define "audit.finished", :info, %i[generation pid descriptors findings seconds reason],
             "The descriptors and threads of a new mold were looked at; `reason` says why they could not be."
      define "finding.reported", :warn,
             %i[kind severity subject location reason advice action count role slot generation pid told],
             "Something that a fork breaks, `count` of its kind; `action` says what was done about it, if anything. " \
             "`told`: another worker has made the same change; then the level is info."

      define "service.ready", :info, %i[name slot generation pid], "A service runs."
      define "service.exited", :info, %i[name slot generation pid reason backtrace],
             "A service that was asked to leave is gone."
      define "service.lost", :error, %i[name slot generation pid reason backtrace],
             "A service ended that nobody told to; it is started again."
      define "service.failed", :error, %i[slot generation pid reason backtrace], "A service never became ready."

      define "request.refused", :info, %i[slot generation pid status reason remote method path],
             "Not a request that is understood and allowed; the client got this status."
      define "proxy.refused", :info, %i[slot generation pid remote reason],
             "A connection to a listener with proxy_protocol did not open with a PROXY header; it was closed."
      define "request.failed", :error, %i[slot generation pid method path seconds queued error],
             "The app raised; the client got 500."
      define "request.timed_out", :error, %i[slot generation pid method path seconds queued location error],
             "A request outlived its soft timeout. The client got 504, unless the head of the answer had been sent " \
             "or the app had called `handled!`. `error` has the backtrace of the moment, `location` the app's own " \
             "line in it."
      define "requests.refused", :info, %i[count reason advice],
             "The reactor refused requests as malformed, too large or too slow; `reason` counts each kind. `advice` " \
             "says what to set if a body was longer than `max_body_bytes`, or than all of `spool`'s `total:`."
      define "requests.shed", :warn, %i[count reason waiting connections busy],
             "The reactor answered with 503, or reset what had begun: too much to do. `reason` counts by the limit " \
             "that was met; `busy` names what the workers are at."
      define "requests.retried", :warn, %i[count], "Safe requests of workers that died were served by others."
      define "requests.lost", :warn, %i[count reason slowest request slot generation pid],
             "Requests whose worker died or gave up: 502 or 504, or a reset if the answer had begun; and clients " \
             "that took their answers too slowly, or slowest when there was no room for more: `slowest` has the " \
             "address and the rate of the last one. Where the worker died, `worker.killed` or `worker.lost` says " \
             "why. In direct mode only clients that were too slow, one at a time, each with its `request`."
      define "queue.delayed", :warn, %i[count median p99 waiting],
             "Requests wait long for a worker: `median` and `p99` in seconds, rounded up to 2^n microseconds."
      define "queue.blocked", :error, %i[waiting idle replaced],
             "Requests wait and the workers in the slots `idle` take none, though they have nothing to do: they are " \
             "replaced, and the reactor if that was no help. This is a fault of Pando or of a native extension."
      define "queue.stalled", :warn, %i[waiting seconds busy advice],
             "In development: every worker has been at one request for so long, and others wait. `busy` names what " \
             "the workers are at. An app that requests something from itself waits like that for ever."
      define "queue.recovered", :info, %i[p99], "Requests wait for a worker no longer than they should."
      define "accept.failed", :error, %i[pid reason], "A worker has no descriptor left for a new connection."
      define "nodes.quiet", :info, %i[reason], "No job node takes a new job from now on; what runs ends."
      define "nodes.resumed", :info, %i[reason], "Job nodes take jobs again; those that were quiet are replaced."
      define "node.stuck", :info, %i[slot generation pid request seconds reason],
             "The jobs of a node have made no progress for its `timeout`; it is killed, and replaced. " \
             "Belongs to the `worker.killed` that follows."
      define "work.dropped", :warn, %i[library count names slot generation pid],
             "A worker left before all that a library had queued inside it was done: `stop_timeout` was over, or it " \
             "was scheduled for later. `names` says what was lost."
      define "job.failed", :error, %i[node slot pid name reason location],
             "A job raised in a node whose library would not tell of it; `name` is its queue."
      define "job.killed", :warn, %i[node pid name id deaths reason],
             "The node `pid` died while it did this job of Sidekiq's or Solid Queue's, one of maybe several; `name` " \
             "is its class, `deaths` how many have died with it. `reason` says what becomes of it."
      define "job.buried", :error, %i[node name id queue deaths reason],
             "A job of Sidekiq's or Solid Queue's with which `deaths` processes or threads have died is not done " \
             "again; `name` is its class, `reason` says where it is now."
      define "broker.lost", :warn, %i[node slot pid reason],
             "A node cannot reach the broker that it has its jobs from; it tries again, later each time."
      define "broker.found", :info, %i[node slot pid seconds], "It has reached it again."
      define "request.killed", :info, %i[slot generation pid request seconds reason],
             "A request outlived its hard timeout, or its worker the hard limit of memory; the worker is killed. " \
             "Belongs to the `worker.killed` that follows."
      define "request.poison", :error, %i[request count within reason refused],
             "One method and path has ended `count` workers within so many seconds; `reason` says how. `refused`: " \
             "for so many seconds it is answered with 503 (`poison refuse:`)."

      define "profile.written", :info, %i[slot generation pid path request seconds],
             "The first request of a generation was profiled; `path` is the file."
      define "profile.failed", :warn, %i[slot generation pid reason], "A profile could not be made; the request was."
      define "pages.failed", :warn, %i[slot generation pid reason],
             "`pando pages` got no recording of this worker, which serves on."

      define "lines.lost", :error, %i[count pid],
             "Whoever reads the log did not keep up, or it could not be written: so many lines of this process are " \
             "not in it. Logged whatever `log_level` says."
      define "hook.failed", :error, %i[hook slot generation pid reason], "A hook raised; names the hook and its line."
      define "link.malformed", :error, %i[role slot generation pid reason],
             "A child sent a record that does not decode; the child is ended."
      define "orphan.exited", :error, %i[pid parent reason], "A process that the app forked would have served on."
      define "orphan.reaped", :info, %i[pid total], "A process that the app left behind ended as the monitor's child."
    end
  end
end
