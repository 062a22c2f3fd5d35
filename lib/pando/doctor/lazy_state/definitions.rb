# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # The methods that exist, to tell later which ones requests have defined.
      #
      # @api private
      class Definitions
        # Methods that one line has defined.
        Defined = Struct.new(:path, :line, :owners, :names)

        PUBLIC = Module.instance_method(:instance_methods)
        PRIVATE = Module.instance_method(:private_instance_methods)
        METHOD = Module.instance_method(:instance_method)
        NAME = Module.instance_method(:inspect)
        SINGLETON = Kernel.instance_method(:singleton_class)
        SINGLETON_NAMES = Kernel.instance_method(:singleton_methods)
        private_constant :PUBLIC, :PRIVATE, :METHOD, :NAME, :SINGLETON, :SINGLETON_NAMES

        def initialize
          @known = {}.compare_by_identity
          ObjectSpace.each_object(Module) { |one| @known[one] = [names(one), singleton_names(one)] }
        end

        # @return [Array<Defined>] what modules that were there before have got since
        def fresh
          found = {}
          @known.each do |one, (names, singleton_names)|
            (names(one) - names).each { |name| note(found, one, name, one) }
            (singleton_names(one) - singleton_names).each { |name| note(found, SINGLETON.bind_call(one), name, one) }
          end
          found.values
        end

        private

        def names(one) = PUBLIC.bind_call(one, false) + PRIVATE.bind_call(one, false)
        def singleton_names(one) = SINGLETON_NAMES.bind_call(one, false)

        def note(found, holder, name, owner)
          place = METHOD.bind_call(holder, name).source_location
          return unless place

          known = found[place] ||= Defined.new(*place, [], [])
          known.owners |= [NAME.bind_call(owner)]
          known.names << name.name
        rescue NameError
          nil # undefined meanwhile
        end
      end
    end
  end
end
