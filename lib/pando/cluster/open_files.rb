# frozen_string_literal: true

module Pando
  module Cluster
    # The monitor's limit of open files. The monitor has three descriptors for each thread of each worker, and the usual
    # soft limit, 1024, exists only for programs that use select(2). So the monitor raises its own to the hard one. The
    # programs that it starts get the limit that the server was given, for the application may use select(2).
    module OpenFiles
      class << self
        # @return [Integer, nil] the soft limit that the server was given; nil: this process has not raised it
        attr_reader :given

        # Does nothing if a sandbox forbids it.
        # @param given [Integer, nil] what another image of this process has found; nil: there was none
        def raise_limit(given = nil)
          soft, hard = Process.getrlimit(:NOFILE)
          Process.setrlimit(:NOFILE, hard, hard)
          @given = given || soft
        rescue SystemCallError
          nil
        end

        # @param error [StandardError] of this process
        # @return [String] its message, and what to do about it
        def explain(error)
          return error.message unless error.is_a?(Errno::EMFILE)

          "#{error.message}: the monitor may have #{Process.getrlimit(:NOFILE).first} (raise `ulimit -Hn`, or " \
            "LimitNOFILE= in the systemd unit)"
        end
      end
    end
  end
end
