# frozen_string_literal: true

module Pando
  module Cluster
    module Reactor
      # Whether a process waits for a disk, or a server of files, and cannot be interrupted: state D in proc(5). Asked
      # by the monitor.
      #
      # @api private
      module DiskWait
        # @param pid [Integer]
        # @return [Boolean]
        def self.of?(pid)
          File.read("/proc/#{pid}/stat").rpartition(") ").last.start_with?("D")
        rescue SystemCallError
          false
        end
      end
    end
  end
end
