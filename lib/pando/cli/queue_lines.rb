# frozen_string_literal: true

module Pando
  module CLI
    # The lines of `pando status` about the reactor's clients: connections, queued
    # requests and buffered bytes. Part of {StatusReport}.
    #
    # @api private
    module QueueLines
      BUFFERS = %w[heads bodies answers spooled_bodies spooled_answers].freeze
      private_constant :BUFFERS

      private

      def queue
        return unless (queue = one("queue"))

        "connections: #{queue["connections"]}, idle: #{queue["idle"]}; requests queued: #{queue["waiting"]}" \
          "#{waiting_for_readers(queue)}, total: #{queue["requests"]}"
      end

      def waiting_for_readers(queue)
        " (#{queue["set_aside"]} of them held back for slow readers)" if queue["set_aside"].to_i.positive?
      end

      # nil if the server is older than this command.
      def buffers
        kinds = one("queue")&.slice(*BUFFERS)
        return unless kinds&.size == BUFFERS.size

        heads, bodies, answers, *spooled = kinds.values_at(*BUFFERS).map { |bytes| format("%.1f", bytes / (1024.0**2)) }
        "buffers in MiB: heads #{heads}, bodies #{bodies}, responses #{answers}; " \
          "in the spool: bodies #{spooled.first}, responses #{spooled.last}"
      end
    end
  end
end
