# frozen_string_literal: true

module Pando
  module ForkSafety
    module Libraries
      # Looks for constants without loading anything.
      module Constants
        # Module's own methods, because a class may have redefined them.
        NAMES, GET, PENDING = %i[constants const_get autoload?].map { |name| Module.instance_method(name) }
        private_constant :NAMES, :GET, :PENDING

        # @return [Object, nil] nil also if it would have to be autoloaded
        def self.find(path)
          path.split("::").inject(Object) { |parent, name| child(parent, name) or break }
        end

        # Puts a module before a class that is loaded, once.
        #
        # @return [Class, nil] the class; nil: it is not loaded, or has the module already
        def self.prepend_once(path, hook)
          owner = find(path)
          owner.prepend(hook) if owner && !owner.include?(hook)
        end

        # @return [String, nil] the constant's VERSION, or that of the nearest enclosing module that has one
        def self.version_near(path)
          until path.empty?
            version = find("#{path}::VERSION")
            return version if version.is_a?(String)

            path = path.rpartition("::").first
          end
        end

        # @yieldparam name [Symbol] of a public constant of this module @yieldparam value [Object]
        def self.each(owner)
          NAMES.bind_call(owner, false).each do |name|
            next if PENDING.bind_call(owner, name, false)

            value = begin
              GET.bind_call(owner, name, false)
            rescue NameError, LoadError
              next # removed, made private, its autoload fails, or const_missing interfered
            end
            yield name, value
          end
        end

        # Runs the block without warnings: reading a deprecated constant causes one.
        def self.quietly
          verbose = $VERBOSE
          $VERBOSE = nil
          yield
        ensure
          $VERBOSE = verbose
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
