# frozen_string_literal: true

module Pando
  module Cluster
    # What a child keeps from role to role: the shared things it inherited.
    #
    # @api private
    Context = Struct.new(:monitor_pid, :scoreboard, :listeners, :payload, keyword_init: true) do
      def options = payload.options
    end
  end
end
