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
        # A command that takes its time. It is told every event of the monitor, and decides from them and from the
        # state of the cluster whether it has come to its end.
        #
        # Owned by a Session, in the monitor.
        #
        # @api private
        class Task
          include Brief
          include Counted

          # @return [String, nil] what was achieved, once it was
          attr_reader :achieved
          # @return [String, nil] why it failed
          attr_reader :failure

          # @param cluster [Monitor]
          def initialize(cluster)
            @cluster = cluster
          end

          # @return [Boolean] whether the monitor can tell after an upgrade how the task ended
          def lasting? = false

          def over? = !(@achieved || @failure).nil?

          # Events that it causes at once are told to #observe before it returns.
          def start = raise(NoMethodError, "#{self.class} must say how it begins")

          # @param _event [Event]
          def observe(_event); end

          # Called at each turn of the monitor's loop.
          def check; end

          # What the task must wait for, if events do not tell.
          # @return [Array(String, Float), nil] in words, and seconds that this takes at most (nil: not known); nil:
          #   nothing
          def obstacle = nil

          private

          # @param worker [Child] of the pool that the task is about
          def title(worker) = "the #{@pool.options.jobs ? "node" : "worker"} in slot #{worker.slot}"

          # @param worker [Child] one that is busy
          def engagement(worker)
            return "is at #{worker.job[:request]}" unless @pool.options.jobs

            "is running #{counted(worker.row.running, "job")}"
          end

          def achieve(text) = @achieved = text
          def give_up(text) = @failure = text
        end

        # Several tasks at once: it is over when all are.
        class Together < Task
          # @param tasks [Array<Task>]
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

        # Puts the server back into rotation.
        class Undrain < Task
          def start
            return give_up("the server was not draining") unless @cluster.drain.begun?

            @cluster.drain.undo("pando drain --undo")
            achieve("the server is in rotation again")
          end
        end

        # Job nodes take no new job.
        class BeQuiet < Task
          def start
            return give_up("there are no job nodes") unless @cluster.quiet.concerns_anybody?

            @cluster.quiet.begin("pando quiet")
            achieve("no job node takes a new job; `pando status` shows what still runs")
          end
        end

        # Job nodes take jobs again.
        class Unquiet < Task
          def start
            return give_up("the job nodes were not quiet") unless @cluster.quiet.begun?

            @cluster.quiet.undo("pando quiet --undo")
            achieve("job nodes take jobs again: those that were quiet are replaced")
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

        # Cancels a reload.
        class CancelReload < Task
          def start
            return achieve("the reload is called off") if @cluster.reload.cancel("pando reload --cancel")

            give_up(@cluster.reload.under_way? ? "its generation is on its way already" : "no reload is under way")
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
          # @param how [Symbol] :gracefully, :quickly or :at_once
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

require "pando/cluster/control/tasks/refork"
require "pando/cluster/control/tasks/scale"
