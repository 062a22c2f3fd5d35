# frozen_string_literal: true

module Pando
  module ForkSafety
    class Finding
      # What a kind of finding stands for: its usual severity, one line of help, the usual advice.
      Kind = Struct.new(:severity, :help, :advice)
      private_constant :Kind

      # Every kind. docs/doctor.md shows this table; a test compares them.
      # @return [Hash{Symbol => Struct}]
      KINDS = {
        shared_socket: Kind.new(
          :error, "A connected socket is open in two live processes: each reads answers meant for the other.",
          "Close it in before_fork, or open it in after_worker_fork."
        )
      }.each_value(&:freeze).freeze
    end
  end
end
