# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/counted"

module Pando
  module Cluster
    class Control
      # The commands of clients that take their time, a {Task} each.
      #
      # @api private
      module Tasks
        # It is told every event of the monitor, and decides from them and from the state of the cluster whether it has
        # come to its end. Owned by a Session, in the monitor.
        class Task
          include Brief
          include Counted

          # What was achieved, and why it failed; nil: not yet.
          attr_reader :achieved, :failure

          def initialize(cluster)
            @cluster = cluster
          end

          # @return [Boolean] whether the monitor can tell after an upgrade how the task ended
          def lasting? = false

          # @return [Boolean] whether the client is spared the events of the server
          def quiet? = false

          def over? = !(@achieved || @failure).nil?

          # Events that it causes at once are told to #observe before it returns.
          def start = raise(NoMethodError, "#{self.class} must say how it begins")

          def observe(_event); end

          # Called at each turn of the monitor's loop.
          def check; end

          # What the task must wait for, if events do not tell.
          # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known); nil:
          #   nothing
          def obstacle = nil

          private

          def title(worker) = "the #{@pool.options.jobs ? "node" : "worker"} in slot #{worker.slot}"

          def engagement(worker)
            return "is at #{worker.job[:request]}" unless @pool.options.jobs

            "is running #{counted(worker.row.running, "job")}"
          end

          def achieve(text) = @achieved = text
          def give_up(text) = @failure = text
        end

        # Several tasks at once: it is over when all are.
        class Together < Task
          def initialize(cluster, tasks)
            super(cluster)
            @tasks = tasks
          end

          def start = @tasks.each(&:start)
          def check = @tasks.each { |task| task.check unless task.over? }
          def over? = @tasks.all?(&:over?)
          def observe(event) = @tasks.each { |task| task.observe(event) unless task.over? }
          def obstacle = @tasks.reject(&:over?).filter_map(&:obstacle).first
          def achieved = joined(&:achieved)

          # If one has failed: what the others have achieved, too.
          def failure = (text = joined(&:failure)) && [text, *achieved].join("; ")

          private

          def joined(&text) = @tasks.filter_map(&text).join("; ").then { |all| all unless all.empty? }
        end

        # A command that is done as soon as it begins.
        class Immediate < Task
          # @yieldreturn [String] what was achieved
          def initialize(cluster, &work)
            super(cluster)
            @work = work
          end

          def start = achieve(@work.call)
        end

        # Sends all events to its client until one of the two ends. A client that reads slowly is told how many it has
        # missed.
        class Follow < Task
          # @param session [Session] of its client
          # @param prefixes [Array<String>] of the names that the client wants; empty: all
          def initialize(cluster, session, prefixes)
            super(cluster)
            @session = session
            @prefixes = prefixes
            @missed = 0
          end

          def quiet? = true
          def lasting? = true
          def start = @session.say("following")

          # The monitor ends right after the last event.
          def observe(event)
            tell(event) if @prefixes.empty? || event.name.start_with?(*@prefixes)
            achieve("the server has stopped") if event.name == "monitor.stopped"
          end

          private

          def tell(event)
            return @missed += 1 unless @session.prompt?

            @session.say("missed", count: @missed) if @missed.positive?
            @missed = 0
            payload = event.payload.except(:backtrace, :event, :time)
            @session.say("event", event: event.name, time: format("%.3f", event.time.to_f),
                                  **payload.transform_values { |value| text(value) })
          end

          # As the log writes it.
          def text(value)
            case value
            when Float then value.round(6)
            when Array then value.join(",")
            when Exception then "#{value.class}: #{value.message}"
            else value
            end
          end
        end

        # Takes the server out of the load balancers' rotation, and waits for the last request.
        class Drain < Task
          # Seconds without a request that count as silence.
          SILENCE = 1.0

          def start
            return give_up("the setting `health` is off: load balancers would not notice") unless
              @cluster.drain.visible?

            @cluster.drain.begin("pando drain")
            @silent_since = Sys.now
          end

          def lasting? = true

          def check
            return give_up("`pando drain --undo` has put the server back into rotation") unless @cluster.drain.begun?

            note_requests
            achieve("no more requests arrive") if @cluster.drain.noticed? && Sys.now - @silent_since > SILENCE
          end

          # Load balancers check the health of a server only now and then.
          def obstacle
            drain = @cluster.drain
            return unless drain.begun?
            return ["load balancers have `drain_delay` to notice", drain.left] unless drain.noticed?

            ["a second without a request must pass", nil]
          end

          def observe(event)
            give_up("the server stops") if event.name == "monitor.stopping"
          end

          private

          def note_requests
            total = @cluster.reactors.state[:requests]
            @silent_since = Sys.now if total != @total || @cluster.reactors.in_flight[:requests].positive?
            @total = total
          end
        end

        # Loads another release of the application.
        class ReloadRelease < Task
          # @param now [Boolean] whether all workers run the new release without waiting for a canary
          def initialize(cluster, now: false)
            super(cluster)
            @now = now
          end

          def start = @cluster.reload.request(@now ? "pando reload --now" : "pando reload", now: @now)
          def lasting? = true
          def obstacle = @cluster.reload.obstacle

          # Another reload may be under way: its events do not count.
          def observe(event)
            @started ||= event.name == "reload.started"
            return give_up("the server stops") if event.name == "monitor.stopping"

            follow(event) if @started
          end

          private

          def follow(event)
            case event.name
            when "reload.finished" then achieve("#{done(event)}#{@kept}")
            when "reload.serving" then serve(event) if event[:reason]
            when "reload.incomplete" then @kept = "; a restart is needed for: #{event[:settings]}"
            when "reload.failed" then give_up(event[:reason])
            end
          end

          def done(event) = "every worker runs the new release, after #{event[:seconds]} s"

          # No request has come by which the release could be judged. The client does not wait for one.
          def serve(event)
            achieve("#{done(event)}, without proof: #{event[:reason]}. It is watched for #{event[:longest]} s at " \
                    "most, and taken back if it fails; then its settings and services follow")
          end
        end

        # Upgrades the monitor to the installed version.
        class UpgradeMonitor < Task
          def start = @cluster.upgrade.request("pando upgrade")
          def lasting? = true
          def obstacle = @cluster.upgrade.waiting

          def observe(event)
            case event.name
            when "upgrade.incomplete"
              @kept = "; these settings differ from the configuration file, run pando reload: #{event[:settings]}"
            when "monitor.upgraded"
              achieve("the monitor runs Pando #{event[:to]} now, and ran #{event[:from]}; " \
                      "no other process was touched#{@kept}")
            when "upgrade.failed" then give_up(event[:reason])
            end
          end
        end

        # Ends the server.
        class Stop < Task
          def initialize(cluster, how)
            super(cluster)
            @how = how
          end

          def start
            return @cluster.drain.stop("pando stop") if @how == :gracefully

            @cluster.shutdown.public_send(@how, "pando stop")
          end

          def observe(event)
            achieve("the server has stopped") if event.name == "monitor.stopped"
          end
        end

        # Forks the next generation from a warm worker.
        class Refork < Task
          REFUSALS = %w[refork.refused refork.withheld].freeze

          def initialize(cluster, pool, force)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @force = force
          end

          # Waits a while for workers that start or leave, as they do after the last refork.
          def start
            @until = Sys.now + @pool.options.stop_timeout + @pool.options.longest_request.to_f
            check
          end

          def check
            return if @begun || (@pool.generations.reforks.blocking_worker && Sys.now < @until)

            @begun = true
            @cluster.pools.about(@pool) { @pool.generations.refork("pando refork", force: @force) }
            @number = @pool.generations.upcoming&.number unless over?
          end

          def observe(event)
            return unless event[:pool] == @name && @begun
            return give_up("refused: #{event[:reason]}") if REFUSALS.include?(event.name) && @number.nil?

            observe_generation(event) if @number && event[:generation] == @number
          end

          def obstacle
            return starting_or_leaving unless @begun

            upcoming = @pool.generations.upcoming
            return unless upcoming && upcoming.number == @number

            source_at_work(upcoming.mold) || thread_on_trial
          end

          private

          def observe_generation(event)
            case event.name
            when "canary.unproven" then @unproven = ", without proof: #{event[:reason]}"
            when "refork.finished"
              achieve("every worker runs generation #{@number}, after #{event[:seconds]} s#{@unproven}")
            when "generation.refused" then give_up("refused: #{event[:reason]}")
            when "generation.discarded" then give_up("generation #{@number} was discarded: #{event[:reason]}")
            when "generation.retired" then give_up("generation #{@number} has lost its mold")
            end
          end

          # Describes each worker once: that its request has ended is no news.
          def starting_or_leaving
            worker = @pool.generations.reforks.blocking_worker or return
            @descriptions ||= {}.compare_by_identity
            @descriptions[worker] ||= describe(worker)
            [@descriptions[worker], @until - Sys.now]
          end

          def describe(worker)
            busy = ", and #{engagement(worker)}" if worker.pid && worker.job.any?
            "#{title(worker)} is #{worker.leaving? ? "leaving" : "starting"}#{busy}"
          end

          # The source of the mold forks between two requests.
          def source_at_work(mold)
            return unless mold&.ordered? && mold.source&.job&.any?

            ends = [mold.deadline, (mold.source.hard_deadline unless @pool.options.jobs)].compact.min
            ["#{title(mold.source)} #{engagement(mold.source)}", ends - Sys.now]
          end

          def thread_on_trial
            generations = @pool.generations
            generations.occupation if generations.on_trial? && generations.lost_threads.pending?
          end

          def achieve(text) = super([*@name, text].join(": "))
          def give_up(text) = super([*@name, text].join(": "))
        end

        # Starts more workers, or ends some. It is over when all workers are ready and the surplus has left. If that
        # takes too long, it says why; the monitor keeps the number and goes on trying.
        class Scale < Task
          # Events about a worker that failed to start.
          FAILURES = %w[worker.failed fork.failed spawn.failed check.failed].freeze
          # After so many of them it waits no longer.
          TRIES = 3

          def initialize(cluster, pool, size)
            super(cluster)
            @pool = pool
            @name = (pool.name if cluster.pools.several?)
            @size = size
            @failures = 0
          end

          def start
            give_up(bounds) unless @cluster.pools.about(@pool) { @pool.rollout.scale(@size) }
          end

          def lasting? = true

          def check
            now = @pool.rollout.size
            return give_up("another command has asked for #{counted(now, "worker")} since") if now != @size
            return achieve(success) if workers.size == @size && workers.all?(&:ready?)

            give_up(missing("after #{timeout.round} s")) if Sys.now >= deadline
          end

          def observe(event)
            return unless event[:pool] == @name
            return give_up(unbootable(event[:reason])) if event.name == "pool.failing"
            return unless FAILURES.include?(event.name) && event[:slot]

            @failures += 1
            @reason = event[:reason]
            give_up(missing("after #{counted(@failures, "failure")}")) if @failures >= TRIES
          end

          def bounds
            rollout = @pool.rollout
            others = rollout.others
            threads = @pool.roster.threads
            room = "1 to #{counted(rollout.most(others), "worker")}#{" with #{threads} threads each" if threads > 1}"
            return "a cluster has #{room}" if others.zero?

            "#{@name} can have #{room}: a server has #{Roster::LANES} threads at most, and the other pools need " \
              "#{others} of them, counting the extra worker of a rollout"
          end

          # A worker ends its request before it leaves; without a mold there is nothing to fork workers from.
          def obstacle
            busy = workers.find { |worker| worker.leaving? && worker.job.any? }
            return ["#{title(busy)} #{engagement(busy)}", deadline - Sys.now] if busy

            @pool.generations.occupation unless @pool.generations.current&.forks?
          end

          private

          # One that keeps its connections for a while is not waited for.
          def workers = @pool.roster.workers.reject(&:draining?)

          # It starts again after an upgrade of the monitor.
          def deadline = @deadline ||= Sys.now + timeout

          # Seconds in which a worker starts, or ends its request and leaves.
          def timeout
            options = @pool.options
            options.spawn_timeout + options.stop_timeout + options.longest_request.to_f +
              (@pool.generations.current&.forks? ? 0.0 : options.boot_timeout)
          end

          def missing(since)
            ready, others = workers.partition { |worker| worker.ready? && worker.slot < @size }
            surplus = others.count { |worker| worker.slot >= @size }
            left = ", and #{counted(surplus, "worker")} still #{surplus == 1 ? "leaves" : "leave"}" if surplus.positive?
            ["#{ready.size} of #{@size} workers are ready #{since}#{left}", *@reason].join(": ")
          end

          def unbootable(reason)
            "#{@name} cannot be booted, and gets #{counted(@size, "worker")} when it can: #{reason}"
          end

          def success
            kept = @pool.roster.workers.count(&:draining?)
            more = "; #{counted(kept, "leaving worker")} #{kept == 1 ? "keeps its" : "keep their"} connections for now"
            ready = "#{counted(@size, "worker")} #{@size == 1 ? "is" : "are"} ready"
            [*@name, "#{ready}#{more if kept.positive?}"].join(": ")
          end
        end
      end
    end
  end
end
