# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Karafka
        # Makes new what Karafka keeps from one run to the next, for Karafka means to run once in the life of a process:
        # how far it has come, its manager of connections, what it was assigned and the producer. In the node, before
        # each start; and ends the one thread that Karafka leaves behind.
        module Renewal
          # Takes the place of rdkafka's logger until all is written, and ends the thread that writes when it is
          # given itself.
          class Last
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

          # One that was closed stays closed. What was set in it, and who listens to it, the new one has from the old.
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

          # rdkafka writes its log on a thread that nobody ends.
          def end_log_thread
            rdkafka = ::Rdkafka::Config
            logger = rdkafka.logger
            rdkafka.logger = last = Last.new(logger)
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
