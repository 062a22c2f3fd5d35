# frozen_string_literal: true

require "objspace"

module Pando
  module Doctor
    module LazyState
      # Finds the names that keep objects alive: a constant, a module's instance or class variable, or an instance
      # variable of an object that one of these holds (a singleton).
      class Holders
        STEPS = 200_000 # objects followed from one holder
        CONSTANTS, GET, PENDING, VARIABLES, VARIABLE, NAME =
          %i[constants const_get autoload? class_variables class_variable_get inspect]
          .map { |name| Module.instance_method(name) }
        INSTANCE_VARIABLES, INSTANCE_VARIABLE =
          %i[instance_variables instance_variable_get].map { |name| Kernel.instance_method(name) }

        # A name and its object.
        Holder = Struct.new(:name, :object, :owner, :constant) do
          # @return [Array(String, Integer), nil] the line of the constant or of its class
          def place
            source = constant ? owner.const_source_location(constant, false) : home
            source if source&.size == 2
          end

          private

          def home
            named = owner && NAME.bind_call(owner)
            named && Object.const_source_location(named)
          rescue NameError
            nil
          end
        end

        # @param wanted [Hash{Integer => Object}] by address of an object, the group or growth that it belongs to
        def initialize(wanted)
          @wanted = wanted
        end

        # @return [Hash{Object => Hash{Holder => Integer}}] by group or growth the holders, with the number of objects
        #   that each reaches
        def find
          found = Hash.new { |all, key| all[key] = Hash.new(0).compare_by_identity }
          return found if @wanted.empty?

          quietly { each_held { |holder| trace(holder, found) } }
          found
        end

        private

        # Reading a deprecated constant warns.
        def quietly
          verbose = $VERBOSE
          $VERBOSE = nil
          yield
        ensure
          $VERBOSE = verbose
        end

        # An old container may hold new objects.
        def trace(holder, found)
          queue = [holder.object]
          queue += references(holder.object) unless @wanted.key?(Origins.address(holder.object))
          visited = {}
          while (object = queue.pop) && visited.size < STEPS
            address = Origins.address(object)
            next if visited[address] || !@wanted.key?(address)

            visited[address] = true
            found[@wanted[address]][holder] += 1
            queue.concat(references(object))
          end
        end

        def references(object)
          (ObjectSpace.reachable_objects_from(object) || [])
            .reject { |one| ObjectSpace::InternalObjectWrapper === one || Module === one } # rubocop:disable Style/CaseEquality
        end

        def each_held(&block)
          ObjectSpace.each_object(Module) do |owner|
            title = NAME.bind_call(owner)
            next if title.start_with?("Pando::Doctor") # this code's own objects

            seen = {}.compare_by_identity
            each_member(owner, title) do |name, object, constant|
              seen[object] = true
              held(name, object, owner, constant, &block)
            end
            hidden(owner, seen) { |object| held("a private constant of #{title}", object, owner, nil, &block) }
          end
        end

        # Ruby does not list private constants, but a module refers to their values.
        def hidden(owner, seen)
          references(owner).each { |object| yield object unless seen[object] }
        end

        def each_member(owner, title)
          VARIABLES.bind_call(owner, false).each do |name|
            yield "#{title}.#{name}", VARIABLE.bind_call(owner, name)
          rescue RuntimeError, NameError
            nil # a superclass has the variable too, or it is gone
          end
          INSTANCE_VARIABLES.bind_call(owner).each do |name|
            yield "#{title}.#{name}", INSTANCE_VARIABLE.bind_call(owner, name)
          end
          each_constant(owner) do |name|
            yield owner.equal?(Object) ? name.name : "#{title}::#{name}", GET.bind_call(owner, name, false), name
          end
        end

        def each_constant(owner)
          CONSTANTS.bind_call(owner, false).each do |name|
            yield name unless PENDING.bind_call(owner, name, false)
          rescue NameError, LoadError
            nil # removed, or its autoload fails
          end
        end

        def held(name, object, owner, constant, &block)
          return if Module === object # rubocop:disable Style/CaseEquality

          yield Holder.new(name, object, owner, constant)
          inner(name, object, owner, constant, &block)
        end

        def inner(name, object, owner, constant)
          return if special?(object)

          INSTANCE_VARIABLES.bind_call(object).each do |variable|
            value = INSTANCE_VARIABLE.bind_call(object, variable)
            yield Holder.new("#{name}.#{variable}", value, owner, constant) unless Module === value # rubocop:disable Style/CaseEquality
          end
        end

        def special?(object)
          case object
          when Integer, Float, Symbol, String, Array, Hash, Regexp, nil, true, false, Proc then true
          else !(Object === object) # rubocop:disable Style/CaseEquality
          end
        end
      end
    end
  end
end
