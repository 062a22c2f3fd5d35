# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
        # What a consumer is given: one message that RabbitMQ has delivered, and the ways to settle it. The first word
        # counts; where none was said, it is acknowledged when the consumer returns.
        #
        # Lives in a node. Its answer goes to the connection that it came by: if that has broken meanwhile, RabbitMQ has
        # taken the message back already, and delivers it again.
        class Message
          # @return [String]
          attr_reader :payload
          # @return [::Bunny::DeliveryInfo] routing_key, exchange, redelivered? and more
          attr_reader :delivery_info
          # @return [::Bunny::MessageProperties] content_type, headers, message_id and more
          attr_reader :properties
          # @return [String] the queue that it waited in
          attr_reader :queue

          # @api private
          # @param line [Line] that it came by
          def initialize(line, queue, delivery_info, properties, payload)
            @line = line
            @queue = queue
            @delivery_info = delivery_info
            @properties = properties
            @payload = payload
          end

          # @return [Boolean] it was delivered before: to a node that was killed, for instance
          def redelivered? = @delivery_info.redelivered?

          # It is done.
          # @return [Boolean] whether RabbitMQ was told, as with the two others
          def ack = settle(:ack)

          # It is not wanted: RabbitMQ dead-letters it where the queue says so, and drops it otherwise.
          def reject = settle(:reject)

          # Back into the queue, near the place where it was.
          def requeue = settle(:requeue)

          # @return [Symbol, nil] :ack, :reject or :requeue, once it was said
          attr_reader :settled

          def inspect = "#<#{self.class} #{queue} #{payload.bytesize} bytes #{settled || "unsettled"}>"

          private

          def settle(how)
            return false if @settled

            @settled = how
            @line.settle(@delivery_info.delivery_tag, how)
          end
        end
      end
    end
  end
end
