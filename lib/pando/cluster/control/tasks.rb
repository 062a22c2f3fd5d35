# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      # The commands of clients that take their time, a {Task} each.
      module Tasks
        # It is told every event of the monitor, and decides from them and from the state of the cluster whether it has
        # come to its end. Owned by a Session, in the monitor.
        class Task
          include Brief
          include Wording

          # The outcome in words, and the reason of a failure; nil: not yet.
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

          def check; end

          # The obstacle that the task must wait for, if events do not tell.
          # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known)
          def obstacle = nil

          private

          def title(worker) = "the #{@pool.options.jobs ? "node" : "worker"} in slot #{worker.slot}"

          def engagement(worker)
            return "is at #{worker.job[:request]}" unless @pool.options.jobs

            running = worker.row.running
            running.zero? ? "is ending its work" : "is running #{counted(running, "job")}"
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
          def initialize(cluster, &work)
            super(cluster)
            @work = work
          end

          def start = achieve(@work.call)
        end

        # Sends all events to its client until one of the two ends. A client that reads slowly gets them later, and
        # learns how many are no longer kept by then.
        class Follow < Task
          # @param prefixes [Array<String>] of the names that the client wants; empty: all
          # @param after [Integer] the number of the last event that the client knows
          # @param numbers [Boolean] whether the client wants to know the events' numbers
          def initialize(session, recent, prefixes = [], after: recent.last, numbers: false)
            super(nil)
            @session = session
            @recent = recent
            @prefixes = prefixes
            @sent = recent.place_of(after)
            @numbers = numbers
          end

          def quiet? = true
          def lasting? = true

          def start
            @session.say("following", number(@sent))
            check
          end

          # The monitor ends right after the last event.
          def observe(event)
            check
            achieve("the server has stopped") if event.name == "monitor.stopped"
          end

          def check
            while @session.prompt? && (entry = @recent.after(@sent))
              missed = @recent.missed(@sent, entry)
              @session.say("missed", count: missed, **number(entry.number - 1)) if missed.positive?
              @sent = entry.number
              wanted?(entry) ? tell(entry) : @passed = true
            end
            tell_passed if @numbers && @passed
          end

          private

          def tell(entry)
            @session.say("event", **number(@sent), **entry.pairs)
            @passed = false
          end

          # Else a client that rarely wants one would seem to have missed the others, when it comes again.
          def tell_passed
            @session.say("passed", **number(@sent))
            @passed = false
          end

          def wanted?(entry) = @prefixes.empty? || entry.name.start_with?(*@prefixes)
          def number(number) = @numbers ? { number: number } : {}
        end

        # Takes the server out of the load balancers' rotation, and waits for the last request.
        class Drain < Task
          # Seconds without a request that count as silence.
          SILENCE = 1.0

          def start
            return give_up("the setting `health` is off: load balancers would not notice") unless
              @cluster.drain.visible?
            return give_up("there is no reactor before a restart: load balancers would not notice") unless
              @cluster.reactors.state

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
            @silent_since = Sys.now if total != @total || @cluster.reactors.in_flight[:requests] > streams
            @total = total
          end

          # They may last for ever, as WebSockets do.
          def streams = @cluster.roster.select { |child| child.worker? && child.pidfd }.sum(&:streams)
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

          # The event `reload.failed` may be about the reload before it. So one that is cancelled before it has begun is
          # noticed here.
          def check
            give_up("the reload was cancelled before it began") unless @started || @cluster.reload.wanted?
          end

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
                    "most, and taken back if it fails; then its settings and services follow#{@kept}")
          end
        end

        # Upgrades the monitor to the installed version.
        class UpgradeMonitor < Task
          def start = @cluster.upgrade.request("pando upgrade")
          def lasting? = true
          def obstacle = @cluster.upgrade.waiting

          def observe(event)
            case event.name
            when "upgrade.incomplete" then @kept = kept(event)
            when "monitor.upgraded"
              achieve("the monitor runs Pando #{event[:to]} now, and ran #{event[:from]}; " \
                      "no other process was touched#{@kept}")
            when "upgrade.failed" then give_up(event[:reason])
            end
          end

          private

          def kept(event)
            settings, restart = event.payload.values_at(:settings, :restart)
            settings &&= "; these settings differ from the configuration file, run pando reload: #{settings}"
            "#{settings}#{"; a restart is needed for: #{restart}" if restart}"
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
      end
    end
  end
end
