# frozen_string_literal: true

module Pando
  module Events
    # The table. Add a new event both here and in docs/events.md, which explains it.
    module Catalogue
      define "monitor.listening", :info, %i[pid listen workers nodes]
      define "server.ready", :info, %i[pid workers nodes threads seconds environment url listen]
      define "monitor.stopping", :info, %i[pid reason seconds status], failed: true
      define "server.failing", :error, %i[reason seconds]
      define "monitor.stopped", :info, %i[pid status]
      define "drain.started", :info, %i[reason seconds]
      define "drain.ended", :info, %i[reason]
      define "monitor.starved", :error, %i[reason]
      define "monitor.stalled", :warn, %i[seconds processor]
      define "monitor.upgrading", :info, %i[pid from to seconds]
      define "monitor.upgraded", :info, %i[pid from to seconds]
      define "upgrade.started", :info, %i[from reason]
      define "upgrade.failed", :error, %i[from reason backtrace]
      define "upgrade.incomplete", :warn, %i[settings restart]
      define "environment.contradictory", :warn, %i[environment reason]
      define "listener.opened", :info, %i[listen inherited]
      define "listener.closed", :info, %i[listen]
      define "listener.unused", :warn, %i[listen name reason]
      define "listener.failed", :warn, %i[listen reason]
      define "control.unavailable", :warn, %i[reason advice]
      define "control.failed", :error, %i[reason backtrace]
      define "pidfile.unavailable", :warn, %i[reason]
      define "events.missed", :warn, %i[count]
      define "admin.ready", :info, %i[pid listen seconds]
      define "admin.exposed", :warn, %i[listen advice]
      define "admin.lost", :warn, %i[pid reason]
      define "admin.failed", :error, %i[pid reason]
      define "setting.ignored", :warn, %i[name reason advice]
      define "setting.followed", :info, %i[name reason]
      define "workers.scaled", :info, %i[from to reason]
      define "pool.failing", :error, %i[reason]

      define "restart.throttled", :error, %i[role slot name generation rate seconds reason]
      define "restart.recovered", :info, %i[role slot name generation]
      define "memory.short", :warn, %i[reason]
      define "memory.recovered", :info, %i[]

      define "mold.booting", :info, %i[generation pid reason]
      define "mold.ready", :info, %i[generation pid]
      define "mold.exited", :info, %i[generation pid reason]
      define "mold.failed", :error, %i[generation pid reason backtrace]
      define "mold.discarded", :info, %i[generation pid reason]
      define "mold.refused", :info, %i[generation pid reason]
      define "mold.leaving", :info, %i[generation pid reason]
      define "mold.released", :info, %i[generation pid reason]
      define "mold.retired", :info, %i[generation pid reason]
      define "mold.killed", :warn, %i[generation pid reason]
      define "mold.lost", :error, %i[generation pid reason cause]

      define "worker.spawning", :info, %i[slot generation]
      define "worker.ready", :info, %i[slot generation pid prefaulted prefault_seconds]
      define "worker.leaving", :info, %i[slot generation pid reason cause drain]
      define "worker.hurried", :warn, %i[slot generation pid connections seconds reason]
      define "worker.exited", :info, %i[slot generation pid requests reason]
      define "worker.failed", :error, %i[slot generation pid reason backtrace]
      define "worker.killed", :error, %i[slot generation pid reason request seconds requests]
      define "worker.lost", :error, %i[slot generation pid reason cause request seconds requests]
      define "worker.unsafe", :warn, %i[slot generation pid reason]
      define "worker.safe", :info, %i[slot generation pid]
      define "threads.refused", :warn, %i[slot generation pid count reason]

      define "allocator.loaded", :info, %i[generation pid name version]

      define "connections.few", :warn, %i[name connections threads advice]

      define "libraries.checked", :info, %i[fine handled limits_reforking refused unknown]
      define "library.reported", :warn, %i[library version reason advice]
      define "library.failed", :warn, %i[library slot generation pid reason]

      define "reactor.ready", :info, %i[pid]
      define "reactor.fallback", :warn, %i[reason]
      define "reactor.limited", :warn, %i[connections reason]
      define "spool.unavailable", :warn, %i[path reason advice]
      define "spool.in_memory", :warn, %i[path reason]
      define "spool.failed", :warn, %i[count reason path advice]
      define "log.failed", :warn, %i[count reason path advice]
      define "log.recovered", :info, %i[count path]
      define "reactor.exited", :info, %i[pid reason]
      define "reactor.failed", :error, %i[pid reason]
      define "reactor.stalled", :warn, %i[pid seconds reason]
      define "reactor.killed", :error, %i[pid reason connections requests]
      define "reactor.lost", :error, %i[pid reason connections requests]

      GENERATION = %i[generation pid purpose source source_slot].freeze
      private_constant :GENERATION

      define "generation.booting", :info, GENERATION
      define "generation.ready", :info, GENERATION
      define "generation.canary", :info, GENERATION
      define "generation.rolling", :info, GENERATION
      define "generation.current", :info, [*GENERATION, :seconds]
      define "generation.kept", :info, [*GENERATION, :requests, :seconds, :longest]
      define "generation.retired", :info, [*GENERATION, :reason]
      define "generation.discarded", :info, [*GENERATION, :reason]

      define "generation.refused", :info, [*GENERATION, :reason]

      define "canary.serving", :info, %i[slot generation pid requests seconds longest]
      define "canary.passed", :info, %i[generation requests seconds]
      define "canary.unproven", :info, %i[generation requests seconds reason replayed]
      define "canary.skipped", :info, %i[generation reason]
      define "canary.failed", :error, %i[generation requests seconds reason]

      define "watch.failed", :error, %i[generation requests seconds reason]

      define "refork.started", :info, %i[slot generation source requests reason choice]
      define "source.changed", :info, %i[slot generation source requests reason]
      define "jit.unavailable", :warn, %i[reason]
      define "gc.major_due", :info, %i[slot generation pid cause]
      define "gc.major_allowed", :info, %i[slot generation pid]
      define "gc.deferral_unavailable", :warn, %i[setting reason]
      define "prefault.prepared", :info, %i[generation pid bytes ranges seconds]
      define "prefault.unavailable", :info, %i[generation reason]

      define "refork.decided", :info, %i[generation decision phase reason rule age saving cost pss]
      define "refork.refused", :warn, %i[wanted reason slot source told]
      define "refork.withheld", :info, %i[wanted reason]
      define "refork.postponed", :info, %i[reason seconds]
      define "refork.suspended", :error, %i[count reason]
      define "refork.resumed", :info, %i[reason]
      define "refork.finished", :info, %i[generation pid seconds]
      define "leak.inherited", :warn, %i[generation bytes requests reason advice]
      define "reboot.started", :info, %i[reason]
      define "reboot.finished", :info, %i[generation seconds from to]
      define "reboot.failed", :warn, %i[generation reason seconds]
      define "reload.started", :info, %i[reason]
      define "reload.serving", :info, %i[generation seconds reason longest]
      define "reload.finished", :info, %i[generation seconds]
      define "reload.incomplete", :warn, %i[settings]
      define "reload.failed", :error, %i[generation reason advice]
      define "spawn.failed", :error, %i[role slot generation reason]
      define "fork.failed", :error, %i[role slot generation reason]

      define "check.failed", :info, %i[role slot generation pid step reason backtrace]
      define "audit.finished", :info, %i[generation pid descriptors findings seconds reason]
      define "finding.reported", :warn,
             %i[kind severity subject location reason advice action count role slot generation pid told]

      define "service.ready", :info, %i[name slot generation pid]
      define "service.exited", :info, %i[name slot generation pid reason backtrace]
      define "service.lost", :error, %i[name slot generation pid reason backtrace]
      define "service.failed", :error, %i[slot generation pid reason backtrace]

      define "request.refused", :info, %i[slot generation pid status reason remote method path]
      define "proxy.refused", :info, %i[slot generation pid remote reason]
      define "request.failed", :error, %i[slot generation pid method path seconds queued lock_wait error]
      define "request.timed_out", :error,
             %i[slot generation pid method path seconds queued lock_wait location error]
      define "request.slow", :warn, %i[pool slot generation pid request seconds location reason]
      define "requests.refused", :info, %i[count reason advice]
      define "requests.shed", :warn, %i[count reason waiting connections busy]
      define "requests.retried", :warn, %i[count]
      define "requests.lost", :warn, %i[count reason slowest request slot generation pid]
      define "streams.cut", :info, %i[count]
      define "queue.delayed", :warn, %i[count median p99 waiting]
      define "queue.blocked", :error, %i[waiting idle replaced]
      define "queue.stalled", :warn, %i[waiting seconds busy advice]
      define "queue.recovered", :info, %i[p99]
      define "accept.failed", :error, %i[pid reason]
      define "nodes.quiet", :info, %i[reason]
      define "nodes.resumed", :info, %i[reason]
      define "node.stuck", :info, %i[slot generation pid request seconds reason]
      define "work.dropped", :warn, %i[library count names slot generation pid]
      define "job.failed", :error, %i[node slot pid name reason location]
      define "job.killed", :warn, %i[node pid name id deaths reason]
      define "job.buried", :error, %i[node name id queue deaths reason]
      define "broker.lost", :warn, %i[node slot pid reason]
      define "broker.found", :info, %i[node slot pid seconds]
      define "request.killed", :info, %i[slot generation pid request seconds reason]
      define "request.poison", :error, %i[request count within reason refused]

      define "profile.written", :info, %i[slot generation pid path request seconds]
      define "profile.failed", :warn, %i[slot generation pid reason]
      define "pages.failed", :warn, %i[slot generation pid reason]

      define "lines.lost", :error, %i[count pid]
      define "hook.failed", :error, %i[hook slot generation pid reason]
      define "link.malformed", :error, %i[role slot generation pid reason]
      define "orphan.exited", :error, %i[pid parent reason]
      define "orphan.reaped", :info, %i[pid total]
    end
  end
end
