# frozen_string_literal: true

module Pando
  module Cluster
    class Control
      # Where the control socket is, with the interface that ListenerSocket needs. Only its owner may connect.
      #
      #   required   without it the server does not start
      #
      # @api private
      Spec = Struct.new(:path, :required, keyword_init: true) do
        def kind = :unix
        def tcp? = false
        def mode = 0o600
        def umask = 0o177
        def proxy_protocol = false
        def backlog = 16
        def to_s = "unix:#{path}"
      end
    end
  end
end
