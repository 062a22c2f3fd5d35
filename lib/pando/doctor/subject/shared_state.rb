# frozen_string_literal: true

require "pando/doctor/lazy_state/analysis"
require "pando/native"

module Pando
  module Doctor
    module Subject
      # Finds objects that all requests share and that keep something of the last one: with threads, two requests at
      # once overwrite it, and one sees the data of the other. It serves each request twice, the second time on another
      # thread. A place that held the environment of the first time, and now holds that of the second time in its stead,
      # was overwritten.
      #
      # Owned by a {Handler}, in a forked child of a worker.
      class SharedState
        LONGEST = 1000 # objects of the application's chain of middleware
        VARIABLES, VALUE = %i[instance_variables instance_variable_get].map { |name| Kernel.instance_method(name) }

        # A place that keeps an environment, and the line to look at.
        Holder = Struct.new(:name, :location)

        def initialize(app)
          @app = app
        end

        # @yieldparam request [Object] the block serves it to its end
        # @yieldreturn [Hash] its Rack environment
        def findings(requests)
          holders = requests.flat_map { |request| overwritten { yield request } }.uniq
          # A variable of an object that a variable holds is named with both.
          outermost = holders.reject { |one| holders.any? { |other| one.name.start_with?("#{other.name}.") } }
          outermost.map do |holder|
            ForkSafety::Finding.new(:shared_state, subject: holder.name, location: holder.location,
                                                   message: "#{holder.name} keeps the environment of each request, " \
                                                            "and the next request overwrites it")
          end
        end

        private

        def overwritten(&)
          first = yield
          before = holders_of(first)
          second = Thread.new(&).value
          before & (holders_of(second) - holders_of(first))
        end

        def holders_of(env) = in_modules(env) + in_chain(env)

        # Constants, and variables of modules.
        def in_modules(env)
          found = LazyState::Holders.new({ Origins.address(env) => :env }).find.fetch(:env, {})
          found.keys.map { |holder| Holder.new(holder.name, holder.place&.join(":")) }
        end

        # Instance variables of the application and of its middleware, which no constant holds.
        def in_chain(env)
          chain.flat_map do |object|
            variables(object).select { |_, value| !callable?(value) && keeps?(value, env) }.keys.map do |variable|
              Holder.new("#{object.class}'s #{variable}", object.method(:call).source_location&.join(":"))
            end
          end
        end

        def chain
          seen = {}.compare_by_identity
          queue = [@app]
          while (object = queue.shift) && seen.size < LONGEST
            next if seen[object]

            seen[object] = true
            queue.concat(variables(object).values.flatten(1).select { |value| callable?(value) })
          end
          seen.keys
        end

        def variables(object) = VARIABLES.bind_call(object).to_h { |name| [name, VALUE.bind_call(object, name)] }

        def callable?(value)
          case value
          when Proc, Module then false
          when Kernel then value.respond_to?(:call)
          end
        end

        # The environment itself, or an object about it such as a Rack::Request.
        def keeps?(value, env)
          case value
          when Module, Thread then false
          else value.equal?(env) || ObjectSpace.reachable_objects_from(value)&.any? { |one| one.equal?(env) }
          end
        end
      end
    end
  end
end
