# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # The native threads of this process, see proc(5).
      #
      # @api private
      module Threads
        # @return [Array<String>] their names, cut to 15 bytes by the kernel
        def self.names
          Dir.children("/proc/self/task").filter_map do |id|
            File.read("/proc/self/task/#{id}/comm").chomp
          rescue SystemCallError
            nil # the thread has ended
          end
        rescue SystemCallError
          [] # no /proc here
        end
      end
    end
  end
end
