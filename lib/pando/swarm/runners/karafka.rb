# frozen_string_literal: true

require "pando/errors"
require "pando/swarm/runners"
require "pando/sys"

module Pando
  module Swarm
    module Runners
      # Runs Karafka's consumers in a node: Karafka 2.5 or newer, in embedded mode. Lives in the node, one at a time. It
      # calls Karafka on the node's main thread only; Karafka's own threads do the rest.
      #
      # Karafka::Embedded starts once per process, and a process forked from it counts as started too. So this class
      # calls what Embedded calls, Karafka::Server.start and .stop. Before each start it resets what Karafka keeps of
      # the last run (Reset). Between a stop and the next start nothing of librdkafka is left.
      class Karafka
        # Milliseconds until Karafka, told to stop, kills the threads of consumers that are still working: quiet_timeout
        # was their time to finish. Messages that they have not marked as consumed are delivered again. If the broker is
        # down, librdkafka would block for `session.timeout.ms`; the main thread must not wait as long as that.
        SHUTDOWN = 5_000
        # Seconds that threads have to end after they were told to.
        PATIENCE = 2.0
        POLL = 0.01
        # The names that Karafka, WaterDrop and rdkafka give their threads.
        THREADS = /\A(?:karafka|waterdrop|rdkafka)\./

        # Karafka takes this for the node of its own swarm. Its id becomes part of `group.instance.id`, so static
        # members have a name for each node. It is one object that changes, because Karafka keeps the object that it
        # got, and a successor with another number is forked from this process.
        Member = Struct.new(:id)

        # Counts what Karafka reports to its monitor. Each mold has one, subscribed once and inherited by the nodes, and
        # each node resets it. Karafka's threads write; the node's main thread reads.
        #
        # A batch that begins, fails or is done is progress. In between, so are offsets marked as consumed, which
        # librdkafka's statistics report every few seconds. Polling is not progress: a listener goes on polling while a
        # consumer hangs.
        class Counters
          # `progress` grows with each bit of work, `done` counts messages, `failed` batches that have raised.
          attr_reader :progress, :done, :failed

          def initialize
            start
          end

          def start
            @lock = Mutex.new
            @progress = @done = @failed = 0
            @lags = {} # id of a subscription group => messages
            @stored = {} # id of a subscription group => sum of the offsets marked as consumed
            @polled = {} # id of a subscription group => monotonic seconds
          end

          # @return [Integer, nil] messages that wait at the broker for this node; nil: not known yet
          def lag = @lags.empty? ? nil : @lags.values.sum

          # @return [Float] seconds since the last poll of the listener that has been silent longest
          def silent_for = Sys.now.then { |now| now - (@polled.values.min || now) }

          def on_consumer_consume(_event) = step

          def on_consumer_consumed(event)
            step { @done += event[:caller].messages.size }
            released(event[:caller])
          end

          def on_error_occurred(event)
            return unless event[:type] == "consumer.consume.error"

            step { @failed += 1 }
            released(event[:caller])
          end

          def on_connection_listener_fetch_loop(event) = polled(event[:subscription_group].id)

          # Karafka 2.5.0 does not report these polls. There, the statistics stand in for them while a consumer is
          # working.
          def on_client_events_poll(event) = polled(event[:subscription_group].id)

          def on_statistics_emitted(event)
            group = event[:subscription_group_id]
            partitions = partitions_in(event[:statistics])
            stored = partitions.sum { |one| [one["stored_offset"], 0].max }
            polled(group)
            step if stored > @stored.fetch(group, stored)
            @lock.synchronize do
              @stored = @stored.merge(group => stored)
              @lags = @lags.merge(group => partitions.sum { |one| lag_of(one) })
            end
          end

          private

          def step
            @lock.synchronize do
              yield if block_given?
              @progress += 1
            end
          end

          # The listener may have waited for this consumer, and can poll again.
          def released(consumer) = polled(consumer.topic.subscription_group.id)

          # The Hash is replaced, not changed: the main thread reads it without the lock.
          def polled(group)
            @lock.synchronize { @polled = @polled.merge(group => Sys.now) }
          end

          # The partitions that this node reads from; -1 is librdkafka's own.
          def partitions_in(statistics)
            statistics.fetch("topics", {}).values.flat_map { |topic| topic.fetch("partitions", {}).values }
                      .select { |one| one["partition"] != -1 && one["fetch_state"] != "none" }
          end

          # -1 means unknown: the stored lag is unknown until something is marked as consumed.
          def lag_of(partition)
            partition.values_at("consumer_lag_stored", "consumer_lag").find { |lag| !lag.negative? } || 0
          end
        end

        COUNTERS = Counters.new

        def self.load(kind)
          Runners.require_gem("karafka", "karafka")
          RequiredFiles.load(kind)
          app = ::Karafka::App
          raise BootError, "#{kind.source}: no consumer has a route (see `routes.draw`)" if app.consumer_groups.empty?

          app.config.shutdown_timeout = [app.config.shutdown_timeout, SHUTDOWN].min
          app.config.swarm.node = Member.new
          ::Karafka.monitor.subscribe(COUNTERS)
          ::Karafka.producer.close # the app may have sent something while it loaded
        end

        def initialize(node)
          @node = node
          @quiet = false
        end

        # @raise [StandardError] Karafka's own error
        def start
          raise Error, "threads of Karafka's last run are still alive: is the broker down?" if threads.any?

          config = ::Karafka::App.config
          config.concurrency = @node.concurrency
          config.swarm.node.id = @node.number
          Reset.run
          COUNTERS.start
          @thread = Thread.new { run }
          @thread.join(POLL) && raise_thread_error until listening?
        end

        def quiet
          @quiet = true
          ::Karafka::Server.quiet
        end

        def stop
          ::Karafka::Server.stop
          ::Karafka.producer.close
          by = Sys.now + PATIENCE
          threads.each { |thread| thread.join([by - Sys.now, 0].max) }
          Reset.end_log_thread
          @thread = nil
        end

        # After `quiet`, Karafka may still take the batch that it was about to take.
        def busy? = in_progress.positive? || (@quiet && !settled?)

        def in_progress = ::Karafka::Server.jobs_queue.statistics.values_at(:busy, :enqueued).sum

        def progress = COUNTERS.progress
        def done = COUNTERS.done
        def failed = COUNTERS.failed
        def lag = COUNTERS.lag

        def healthy?
          return "Karafka has ended: #{@failure || "something other than Pando stopped it"}" unless @thread&.alive?

          seconds = COUNTERS.silent_for
          "a listener has not polled for #{seconds.round} s" if seconds > silence && !busy?
        end

        private

        # Runs on a thread of its own.
        def run
          Thread.current.name = "karafka.pando"
          Thread.current.report_on_exception = false
          ::Karafka::Process.tags.add(:execution_mode, "mode:embedded")
          set_execution_mode
          ::Karafka::Server.start
        rescue Exception => e # rubocop:disable Lint/RescueException
          @failure = "#{e.message} (#{e.class})"
          raise
        end

        # It was a Symbol before Karafka 2.5.1.
        def set_execution_mode
          mode = ::Karafka::Server.execution_mode
          mode.respond_to?(:embedded!) ? mode.embedded! : ::Karafka::Server.execution_mode = :embedded
        end

        def raise_thread_error
          @thread.value
          raise Error, "Karafka ended right after its start"
        end

        # The listeners of the former run are stopped.
        def listening?
          return false if listeners.empty? || ::Karafka::Server.jobs_queue.nil?

          listeners.none? { |one| one.stopped? || one.pending? || one.starting? }
        end

        def threads = Thread.list.select { |thread| THREADS.match?(thread.name) }
        def settled? = listeners.all? { |one| one.quiet? || one.stopped? }
        def listeners = ::Karafka::Server.listeners.to_a

        # The same limit as in Karafka's swarm. A listener that restarts after an error is silent on purpose.
        def silence
          swarm, connection = ::Karafka::App.config.internal.then { |internal| [internal.swarm, internal.connection] }
          [swarm.node_report_timeout, 2 * connection.reset_backoff].max / 1000.0
        end

        # Resets what Karafka keeps from one run to the next, because Karafka expects to run once per process: its
        # status, its connection manager, its assignments and its producer. It runs in the node, before each start. It
        # also ends the one thread that Karafka leaves behind.
        module Reset
          # Replaces rdkafka's logger until everything is written. When the log thread logs this object itself, the
          # thread ends.
          class LastEntry
            def initialize(logger)
              @logger = logger
              @lock = Mutex.new
              @reached = ConditionVariable.new
            end

            def add(severity, text)
              return @logger.add(severity, text) unless text.equal?(self)

              @lock.synchronize { (@thread = Thread.current) && @reached.signal }
              Thread.exit
            end

            def wait
              @lock.synchronize { @thread || @reached.wait(@lock, PATIENCE) }
              @thread&.join(PATIENCE)
            end
          end

          module_function

          def run
            internal = ::Karafka::App.config.internal
            internal.status.reset!
            internal.connection.manager = internal.connection.manager.class.new
            ::Karafka::Instrumentation::AssignmentsTracker.instance.clear
            renew_producer
          end

          # A closed producer stays closed. The new one gets the settings and subscribers of the old one.
          def renew_producer
            config = ::Karafka::App.config
            former = config.producer.config
            config.producer = ::WaterDrop::Producer.new { |fresh| copy(former, fresh) }
          end

          def copy(from, into)
            from.to_h.each do |name, value|
              next if name == :id
              next copy(from.public_send(name), into.public_send(name)) if value.is_a?(Hash) && name != :kafka

              into.public_send(:"#{name}=", name == :kafka ? value.dup : value)
            end
          end

          # rdkafka writes its log on a thread that nothing ends.
          def end_log_thread
            rdkafka = ::Rdkafka::Config
            logger = rdkafka.logger
            rdkafka.logger = last = LastEntry.new(logger)
            rdkafka.ensure_log_thread
            rdkafka.log_queue << [0, last]
            last.wait
          ensure
            rdkafka.logger = logger
          end
        end
      end
    end
  end
end
