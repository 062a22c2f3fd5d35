# frozen_string_literal: true

require "pando/counted"

module Pando
  module Cluster
    class Control
      # A command that takes its time. It is told of every event of the monitor, and decides from
      # them and from what is there whether it has come to its end.
      #
      # @api private
      class Task
        include Counted

        # @return [String, nil] what was achieved, once it was
        attr_reader :achieved
        # @return [String, nil] why it came to nothing
        attr_reader :failure

        # @param cluster [Monitor]
        def initialize(cluster)
          @cluster = cluster
        end

        # @return [Boolean] whether the monitor after an upgrade can tell how it ended
        def lasting? = false

        def over? = !(@achieved || @failure).nil?

        # Begins. What it causes at once is told to #observe before it returns.
        def start = raise(NoMethodError, "#{self.class} must say how it begins")

        # @param _event [Event]
        def observe(_event); end

        # Called at each turn of the monitor's loop.
        def check; end

        private

        def achieve(text) = @achieved = text
        def fail(text) = @failure = text
      end

      # Several at once: it is over when all are.
      class Together < Task
        # @param tasks [Array<Task>]
        def initialize(cluster, tasks)
          super(cluster)
          @tasks = tasks
        end

        def start = @tasks.each(&:start)
        def over? = @tasks.all?(&:over?)
        def observe(event) = @tasks.each { |task| task.observe(event) unless task.over? }
        def failure = said(&:failure)
        def achieved = said(&:achieved)

        private

        def said(&word) = @tasks.filter_map(&word).join("; ").then { |text| text unless text.empty? }
      end

      # The next generation from a warm worker.
      class Refork < Task
        # @param pool [Pool] whose it is
        # @param force [Boolean] see Generations#refork
        def initialize(cluster, pool, force)
          super(cluster)
          @pool = pool
          @name = (pool.name if cluster.pools.several?)
          @force = force
        end

        def start
          @cluster.pools.about(@pool) { @pool.generations.refork("pando refork", force: @force) }
          @number = @pool.generations.upcoming&.number unless over?
        end

        def observe(event)
          return unless event[:pool] == @name
          return fail("refused: #{event[:reason]}") if event.name == "refork.refused" && @number.nil?
          return unless @number && event[:generation] == @number

          case event.name
          when "refork.finished" then achieve("every worker runs generation #{@number}, after #{event[:seconds]} s")
          when "generation.discarded" then fail("generation #{@number} was discarded: #{event[:reason]}")
          when "generation.retired" then fail("generation #{@number} has lost its mold")
          end
        end

        private

        def achieve(text) = super([*@name, text].join(": "))
        def fail(text) = super([*@name, text].join(": "))
      end

      # Another release of the application.
      class ReloadRelease < Task
        def start = @cluster.reload.request("pando reload")
        def lasting? = true

        def observe(event)
          case event.name
          when "reload.finished"
            achieve("every worker runs the new release, after #{event[:seconds]} s#{@kept}") if @mine
          when "reload.incomplete" then @kept = "; a restart is needed for: #{event[:settings]}"
          when "reload.started" then @mine = true
          when "reload.failed" then fail(event[:reason]) if @mine
          when "monitor.stopping" then fail("the server stops")
          end
        end
      end

      # No other release after all.
      class CancelReload < Task
        def start
          return achieve("the reload is called off") if @cluster.reload.cancel("pando reload --cancel")

          fail(@cluster.reload.under_way? ? "its generation is on its way already" : "no reload is under way")
        end
      end

      # More workers, or fewer.
      class Scale < Task
        # @param pool [Pool] of which
        def initialize(cluster, pool, size)
          super(cluster)
          @pool = pool
          @name = (pool.name if cluster.pools.several?)
          @size = size
        end

        def start
          return if @cluster.pools.about(@pool) { @pool.rollout.resize(@size) }

          fail("a cluster has 1 to #{Roster::SEATS / 4} workers")
        end

        def lasting? = true

        def check
          now = @pool.rollout.size
          return fail("somebody has asked for #{counted(now, "worker")} since") if now != @size

          workers = @pool.roster.workers
          achieve(words) if workers.size == @size && workers.all?(&:ready?)
        end

        # Who can never boot is not waited for.
        def observe(event)
          return unless event.name == "pool.failing" && event[:pool] == @name

          fail("#{@name} cannot be booted, and is to have #{counted(@size, "worker")} when it can: #{event[:reason]}")
        end

        private

        def words = [*@name, "#{counted(@size, "worker")} #{@size == 1 ? "is" : "are"} ready"].join(": ")
      end

      # Out of the load balancers' rotation, and nobody asks any more.
      class Drain < Task
        # Seconds without a request that count as silence.
        SILENCE = 1.0

        def start
          return fail("nobody would notice: the setting `health` is off") unless @cluster.drain.visible?

          @cluster.drain.begin("pando drain")
          @silent_since = Sys.now
        end

        def lasting? = true

        def check
          return fail("`pando drain --undo` has put the server back into rotation") unless @cluster.drain.begun?

          listen
          achieve("nobody sends requests any more") if @cluster.drain.noticed? && Sys.now - @silent_since > SILENCE
        end

        def observe(event)
          fail("the server stops") if event.name == "monitor.stopping"
        end

        private

        def listen
          asked = @cluster.reactors.state[:requests]
          @silent_since = Sys.now if asked != @asked || @cluster.reactors.in_flight[:requests].positive?
          @asked = asked
        end
      end

      # Back into it.
      class Undrain < Task
        def start
          return fail("the server was not draining") unless @cluster.drain.begun?

          @cluster.drain.undo("pando drain --undo")
          achieve("the server is in rotation again")
        end
      end

      # Job nodes take nothing new.
      class BeQuiet < Task
        def start
          return fail("there are no job nodes") unless @cluster.quiet.concerns_anybody?

          @cluster.quiet.begin("pando quiet")
          achieve("no job node takes a new job; `pando status` shows what still runs")
        end
      end

      # And take jobs again.
      class Unquiet < Task
        def start
          return fail("the job nodes were not quiet") unless @cluster.quiet.begun?

          @cluster.quiet.undo("pando quiet --undo")
          achieve("job nodes take jobs again: those that were quiet are replaced")
        end
      end

      # Another Pando in place of this monitor's.
      class UpgradeMonitor < Task
        def start = @cluster.upgrade.request("pando upgrade")
        def lasting? = true

        def observe(event)
          case event.name
          when "upgrade.incomplete" then @kept = "; pando reload takes over what has changed of: #{event[:settings]}"
          when "monitor.upgraded"
            achieve("the monitor runs Pando #{event[:to]} now, and ran #{event[:from]}; no other process was touched" \
                    "#{@kept}")
          when "upgrade.failed" then fail(event[:reason])
          end
        end
      end

      # The end of the server.
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
