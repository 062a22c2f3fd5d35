# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Karafka
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
