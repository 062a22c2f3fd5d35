# frozen_string_literal: true

module Pando
  module Swarm
    module Runners
      class Bunny
        # The message that a consumer gets from RabbitMQ, and the ways to settle it. Only the first of ack, reject and
        # requeue counts. Without any, Pando acknowledges the message when the consumer returns.
        #
        # Lives in a node. It is settled on the connection that it came by. If that has broken meanwhile, RabbitMQ has
        # taken the message back already and delivers it again.
        class Message
          # @return [String]
          attr_reader :payload
          # @return [::Bunny::DeliveryInfo] routing_key, exchange, redelivered? and more
          attr_reader :delivery_info
          # @return [::Bunny::MessageProperties] content_type, headers, message_id and more
          attr_reader :properties
          # @return [String] the message's queue
          attr_reader :queue

          # @api private
          # @param line [Line] the line that it came by
          def initialize(line, queue, delivery_info, properties, payload)
            @line = line
            @queue = queue
            @delivery_info = delivery_info
            @properties = properties
            @payload = payload
          end

          # @return [Boolean] whether it was delivered before, for instance to a node that was killed
          def redelivered? = @delivery_info.redelivered?

          # The message is done.
          # @return [Boolean] whether RabbitMQ was told; the same for the other two
          def ack = settle(:ack)

          # RabbitMQ dead-letters the message if the queue says where to, and drops it otherwise.
          def reject = settle(:reject)

          # Puts the message back into the queue, near its old place.
          def requeue = settle(:requeue)

          # @return [Symbol, nil] :ack, :reject or :requeue, once it is settled
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
