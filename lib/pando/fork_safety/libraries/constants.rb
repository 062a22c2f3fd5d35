# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # Looks for constants without loading anything.
      module Constants
        # @return [Object, nil] nil also if it would have to be autoloaded
        def self.find(path)
          path.split("::").inject(Object) { |parent, name| child(parent, name) or break }
        end

        # @return [String, nil] the constant's VERSION, or that of the nearest enclosing module that has one
        def self.version_near(path)
          until path.empty?
            version = find("#{path}::VERSION")
            return version if version.is_a?(String)

            path = path.rpartition("::").first
          end
        end

        def self.child(parent, name)
          return unless parent.is_a?(Module) && parent.const_defined?(name, false) && !parent.autoload?(name, false)

          parent.const_get(name, false)
        end
        private_class_method :child
      end

      # The native threads of this process, see proc(5).
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
