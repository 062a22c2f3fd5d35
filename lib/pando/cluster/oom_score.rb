# frozen_string_literal: true

module Pando
  module Cluster
    # Whom the kernel kills when memory runs out: workers before the reactor, that
    # before the mold, and the monitor last, for the server ends with it. A process
    # without privileges may raise its oom_score_adj, and lower it to what it was
    # born with, so the monitor's own stays as it is and the others lie above it.
    #
    # @api private
    module OOMScore
      # Of the way from the monitor's to the workers'.
      SHARES = { reactor: 1/2r, mold: 1/4r }.freeze

      # A preference, not a need: a sandbox may forbid it.
      #
      # @param role [Symbol]
      # @param workers [Integer, nil] that of workers; nil: all are left alone
      # @param monitor [Integer, String] its pid @param pid [Integer, String] of the process
      # @return [void]
      def self.set(role, workers, monitor:, pid: "self")
        return unless workers

        base = File.read("/proc/#{monitor}/oom_score_adj").to_i
        score = role == :worker ? workers : base + ([workers - base, 0].max * SHARES.fetch(role)).round
        File.write("/proc/#{pid}/oom_score_adj", score.to_s)
      rescue SystemCallError
        nil
      end
    end
  end
end
