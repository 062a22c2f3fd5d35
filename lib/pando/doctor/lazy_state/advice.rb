# frozen_string_literal: true

require "pando/doctor/lazy_state/zeitwerk_files"

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

        # @param loads [Array<Loading::Load>] of one library or file
        # @return [String]
        def self.load(loads)
          names = loads.map(&:title).first(3).join(", ") + (", ..." if loads.size > 3).to_s
          return "Require at boot: #{names}." unless loads.first.autoload?
          return "Load it at boot: config.eager_load = true in Rails, Zeitwerk::Loader.eager_load_all elsewhere." \
            if ZeitwerkFiles.loader_of(loads.first.path)

          "Name at boot what autoload leaves to the first use: #{names}#{eager(loads.first.constant)}."
        end

        # ActiveSupport::Autoload gives a namespace eager_load!, for what it declares as eager.
        def self.eager(constant)
          name = constant.split("::").first
          known = Object.const_get(name) unless Object.autoload?(name)
          " (#{name}.eager_load! leaves out what is not declared as eager)" if known.respond_to?(:eager_load!)
        rescue NameError
          nil
        end
        private_class_method :eager
      end
    end
  end
end
