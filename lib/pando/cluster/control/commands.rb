# frozen_string_literal: true

require "pando/cluster/control/pool_tasks"
require "pando/cluster/control/snapshot"

module Pando
  module Cluster
    class Control
      # The commands of clients, by the first word of the line. Owned by Control, in the monitor.
      class Commands
        # The command cannot be carried out. The message goes to the client.
        class Refused < Pando::Error; end

        SLOW_LOG_OFF = 'slow_log is off: write slow_log 2, "log/slow.log" into the config file, and reload'
        # The commands that a service may give. They change nothing.
        READING = %w[status figures slow events].freeze
        STOPS = { "gracefully" => :gracefully, "quickly" => :quickly, "at_once" => :at_once }.freeze

        def initialize(cluster, recent)
          @cluster = cluster
          @recent = recent
        end

        # @param line [String] untrusted
        # @return [Tasks::Task, nil] that the client must wait for
        def call(line, session)
          word, arguments = Line.decode(line)
          raise Refused, "a service may only ask" unless session.service.nil? || READING.include?(word)

          case word
          when "status", "figures", "pages", "slow" then answer(word, arguments, session)
          when "stop" then stop(arguments)
          when "events" then follow(arguments, session)
          when "stack" then Tasks::Stack.new(@cluster, session, *addressed(arguments))
          else
            task = task(word, arguments) or raise Refused, "there is no such command"
            raise Refused, "the server is stopping" if @cluster.ending?

            task
          end
        end

        private

        def answer(word, arguments, session)
          case word
          when "pages" then pages(arguments, session)
          when "slow" then slow(arguments, session)
          when "status" then tell(Snapshot.new(@cluster), session)
          when "figures" then tell(Figures.new(@cluster), session)
          end
          session.finish("ok")
          nil
        end

        # A client that says which event it knows is told the events' numbers. With 0 it knows none yet, and gets those
        # from now on.
        def follow(arguments, session)
          known = whole(arguments, "after") if arguments["after"]
          Tasks::Follow.new(session, @recent, arguments["names"].to_s.split(","),
                            after: known&.nonzero? || @recent.last, numbers: !known.nil?)
        end

        def tell(records, session)
          session.gather { records.each { |word, pairs| session.say(word, pairs) } }
        end

        # The last slow requests, the newest first.
        def slow(arguments, session)
          on = @cluster.pools.map(&:slow_requests).select(&:on?)
          raise Refused, SLOW_LOG_OFF if on.empty?

          limit = arguments["limit"] ? whole(arguments, "limit") : SlowRequests::KEPT
          requests = on.flat_map(&:recent).sort_by { |facts| -facts[:time] }
          session.say("log", path: on.first.path)
          requests.first(limit).each { |facts| session.say("slow", facts) }
        end

        # The worker writes to the client's own file; the monitor reads none of it.
        def pages(arguments, session)
          worker = worker_of(arguments)
          raise Refused, "a file and a pipe must come along" unless session.descriptors.size == 2

          wish = Line.encode("pages", jobs: whole(arguments, "jobs"), seconds: whole(arguments, "seconds"))
          raise Refused, "the worker does not listen" unless
            worker.order(Message.new(:record_pages, text: wish), session.descriptors)

          session.say("worker", **worker.identity, pool: arguments["pool"], mold: mold_of(worker)&.pid,
                                                   last_event: @recent.last)
        end

        # Without a slot, the worker that has served most.
        def worker_of(arguments)
          workers = pool(arguments).roster.ready_workers
          workers.select! { |worker| worker.slot == whole(arguments, "slot") } if arguments["slot"]
          workers.max_by { |worker| worker.row.requests } or raise Refused, "no worker is ready there"
        end

        def mold_of(worker)
          @cluster.pools.of(worker).roster.molds.find { |mold| mold.generation == worker.generation && mold.ready? }
        end

        def whole(arguments, name)
          text = arguments[name] or raise Refused, "#{name} is missing"
          number = Integer(text, 10, exception: false)
          number&.>=(0) ? number : raise(Refused, "#{name} must be a whole number, 0 or more, but is #{text.inspect}")
        end

        def task(word, arguments)
          case word
          when "refork" then refork(arguments)
          when "reload" then reload(arguments)
          when "upgrade" then Tasks::UpgradeMonitor.new(@cluster)
          when "scale" then Tasks::Scale.new(@cluster, pool(arguments), whole(arguments, "workers"))
          when "drain" then arguments["undo"] ? immediate { undrain } : Tasks::Drain.new(@cluster)
          when "kill" then Tasks::Kill.new(@cluster, *addressed(arguments))
          when "quiet" then immediate { arguments["undo"] ? unquiet : be_quiet }
          end
        end

        # During a rollout two workers may share a slot: the one that is not leaving is meant, unless the client says
        # the pid. A pid that is not the slot's any more is refused, because the client has seen another worker there.
        def addressed(arguments)
          pool = pool(arguments)
          slot = whole(arguments, "slot")
          pid = whole(arguments, "pid") if arguments["pid"]
          workers = pool.roster.workers.select { |one| one.slot == slot && one.pid && (pid.nil? || one.pid == pid) }
          worker = workers.min_by { |one| one.leaving? ? 1 : 0 } or
            raise Refused, "there is no worker#{" with pid #{pid}" if pid} in slot #{slot}"
          [pool, worker]
        end

        def reload(arguments)
          return immediate { cancel_reload } if arguments["cancel"]

          Tasks::ReloadRelease.new(@cluster, now: arguments["now"] == "yes")
        end

        def cancel_reload
          return "the reload is called off" if @cluster.reload.cancel("pando reload --cancel")

          raise Refused, @cluster.reload.under_way? ? "its generation is on its way already" : "no reload is under way"
        end

        def undrain
          raise Refused, "the server was not draining" unless @cluster.drain.begun?

          @cluster.drain.undo("pando drain --undo")
          "the server is in rotation again"
        end

        def be_quiet
          raise Refused, "there are no job nodes" unless @cluster.quiet.concerns_anybody?

          @cluster.quiet.begin("pando quiet")
          "no job node takes a new job; `pando status` shows what still runs"
        end

        def unquiet
          raise Refused, "the job nodes were not quiet" unless @cluster.quiet.begun?

          @cluster.quiet.undo("pando quiet --undo")
          "job nodes take jobs again: those that were quiet are replaced"
        end

        def immediate(&work) = Tasks::Immediate.new(@cluster, &work)

        # All pools that refork at all, unless the client names one.
        def refork(arguments)
          able = @cluster.pools.reject { |pool| pool.generations.reforks.off? }
          able = @cluster.pools if able.empty?
          pools = arguments["pool"] ? [pool(arguments)] : able
          force = arguments["force"] == "yes"
          Tasks::Together.new(@cluster, pools.map { |pool| Tasks::Refork.new(@cluster, pool, force) })
        end

        # The first pool, unless the client names one.
        def pool(arguments)
          name = arguments["pool"] or return @cluster.pools.first
          @cluster.pools.named(name) or
            raise Refused, "there is no pool #{name}, but #{@cluster.pools.names.join(", ")}"
        end

        # A second command may be more impatient than the first, so it does not matter whether the server is stopping.
        def stop(arguments)
          how = STOPS.fetch(arguments.fetch("how", "gracefully")) { raise Refused, "no such way to stop" }
          Tasks::Stop.new(@cluster, how)
        end
      end
    end
  end
end
