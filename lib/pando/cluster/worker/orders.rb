# frozen_string_literal: true

require "pando/cluster/role"

module Pando
  module Cluster
    class Worker < Role
      # What the monitor tells a worker, and asks of it, beside its jobs.
      #
      # @api private
      module Orders
        # Of what others have come to.
        NEWS = %i[refuse lost_thread state_seen].freeze
        private_constant :NEWS

        private

        # @return [nil]
        def hear(message)
          case message.kind
          when :refuse then refusals.add(message.text)
          when :lost_thread then payload.lost_thread(self, message.text)
          when :state_seen then payload.state_seen(message.text)
          end
          nil
        end

        # It is a canary that nobody asks for anything: it does what its work may do of its own accord, and tells how
        # that went.
        # @return [nil]
        def try_out
          report(:tried, text: @work.try_out)
          nil
        rescue Pando::Error => e
          report(:tried_in_vain, text: e.message)
          nil
        end
      end
    end
  end
end
