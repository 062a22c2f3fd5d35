# frozen_string_literal: true

module Pando
  module Cluster
    # Sets which process the kernel kills first when memory runs out: workers before the reactor, the reactor before the
    # mold, and the monitor last, since the server ends with it. An unprivileged process may raise its oom_score_adj,
    # and lower it to its initial value. So the monitor's own stays as it is and the others lie above it, wherever a
    # service manager has put it.
    module OOMScore
      # The kernel's highest value.
      MOST = 1000

      # Does nothing if a sandbox forbids it.
      #
      # @param above [Integer, nil] how far workers lie above the monitor; nil: no score is changed
      # @param monitor [Integer, String] its pid @param pid [Integer, String] of the process
      def self.set(role, above, monitor:, pid: "self")
        return unless above

        base = File.read("/proc/#{monitor}/oom_score_adj").to_i
        File.write("/proc/#{pid}/oom_score_adj", of(role, above, base).to_s)
      rescue SystemCallError
        nil
      end

      # The reactor lies half way between the monitor and the workers, the mold a quarter of the way. If there is little
      # room, workers are told apart first, then the reactor.
      #
      # @param base [Integer] the monitor's score
      # @return [Integer]
      def self.of(role, above, base)
        worker = [above, MOST - base].min
        reactor = worker.fdiv(2).ceil.clamp(0, [worker - 1, 0].max)
        mold = worker.fdiv(4).ceil.clamp(0, [reactor - 1, 0].max)
        base + { worker: worker, reactor: reactor, mold: mold }.fetch(role)
      end
    end
  end
end
