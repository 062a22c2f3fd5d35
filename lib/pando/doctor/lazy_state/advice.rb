# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # The change that moves what was found to the boot.
      #
      # @api private
      module Advice
        # @param kind [Symbol] of the finding
        # @param name [String, Symbol] class of most of the objects
        # @param holder [Holders::Holder, nil]
        # @return [String, nil] nil: the kind's own
        def self.for(kind, name, holder)
          kind == :growth_per_request ? growth(holder) : memory(name, holder)
        end

        def self.growth(holder)
          return unless holder

          "Bound #{holder.name} (a fixed number of entries, the oldest leave), or let the request keep what it builds."
        end
        private_class_method :growth

        def self.memory(name, holder)
          return "Make the Regexp a constant, so that it is compiled at boot." if name == "Regexp"
          return "Build it at boot: a constant, or call at boot what the line calls." unless holder
          return "Fill #{holder.name} at boot, where the constant is written." if holder.constant

          "Fill #{holder.name} at boot: call at the end of the boot (config.ru, an initializer, " \
            "eager_load!) what the line calls, or make it a constant."
        end
        private_class_method :memory

        # @param load [Loading::Load]
        # @return [String]
        def self.load(load)
          return "Call require #{feature(load.path).dump} at boot." unless load.autoload?
          return zeitwerk(load.constant) if zeitwerk?(load.path)

          "Name #{load.constant} at boot: autoload leaves it to the first use#{eager(load.constant)}."
        end

        # ActiveSupport::Autoload gives a namespace eager_load!, for what it declares as eager.
        def self.eager(constant)
          name = constant.split("::").first
          known = Object.const_get(name) unless Object.autoload?(name)
          ", and #{name}.eager_load! may leave it out" if known.respond_to?(:eager_load!)
        rescue NameError
          nil
        end
        private_class_method :eager

        # @param path [String] of a loaded file
        # @return [String] what it is required by
        def self.feature(path)
          folder = $LOAD_PATH.map(&:to_s).select { |one| path.start_with?("#{one}/") }.max_by(&:size)
          path.delete_prefix("#{folder}/").sub(/\.(?:rb|so)\z/, "")
        end

        def self.zeitwerk(constant)
          "Load #{constant} at boot: config.eager_load = true in Rails, Zeitwerk::Loader.eager_load_all elsewhere."
        end
        private_class_method :zeitwerk

        def self.zeitwerk?(path)
          return false unless defined?(::Zeitwerk::Registry)

          ::Zeitwerk::Registry.loaders.each.any? { |loader| loader.dirs.any? { |one| path.start_with?("#{one}/") } }
        end
        private_class_method :zeitwerk?
      end
    end
  end
end
