# frozen_string_literal: true

module Pando
  module CLI
    # What `pando status` says of the reactor's clients: how many there are, what
    # waits, and the bytes that they take. Part of {StatusReport}.
    #
    # @api private
    module QueueLines
      BUFFERS = %w[heads bodies answers spooled_bodies spooled_answers].freeze
      private_constant :BUFFERS

      private

      def queue
        return unless (queue = one("queue"))

        "connections: #{queue["connections"]}, idle: #{queue["idle"]}; requests that wait: #{queue["waiting"]}" \
          "#{set_aside(queue)}, that came so far: #{queue["requests"]}"
      end

      def set_aside(queue)
        " (#{queue["set_aside"]} of them until slow readers have taken more)" if queue["set_aside"].to_i.positive?
      end

      # Nothing of a server that is older than this command.
      def buffers
        kinds = one("queue")&.slice(*BUFFERS)
        return unless kinds&.size == BUFFERS.size

        heads, bodies, answers, *spooled = kinds.values_at(*BUFFERS).map { |bytes| format("%.1f", bytes / (1024.0**2)) }
        "buffers in MiB: heads #{heads}, bodies #{bodies}, answers #{answers}; " \
          "in the spool: bodies #{spooled.first}, answers #{spooled.last}"
      end
    end
  end
end
