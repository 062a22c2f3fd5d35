# frozen_string_literal: true

require "objspace"
require "pando/doctor/lazy_state/findings"
require "pando/fork_safety/libraries/constants"

module Pando
  module Doctor
    module LazyState
      # Turns the traces of an Observation into findings and tables. Attributes each group of objects to what a request
      # did: it loaded a file, compiled code, defined a method, or just built objects.
      class Analysis
        # @param addresses [Hash{Integer => Group}] of live objects
        def initialize(groups:, addresses:, loading:, places:, defined:, growths:)
          @loading = loading
          @places = places
          @defined = defined
          @growths = growths.select { |growth| growth.steady? || growth.once? }
          @addresses = addresses
          index_code
          @owners = {}.compare_by_identity
          groups.each { |group| (@owners[owner_of(group)] ||= []) << group }
        end

        # @return [Array<ForkSafety::Finding>] growth first, then by bytes
        def findings
          memory = MemoryFindings.new(@owners.fetch(nil, []), @growths, holders)
          code = CodeFindings.new(@loading, @defined, @owners, @places)
          (memory.findings + code.findings)
            .sort_by { |one| [one.kind == :growth_per_request ? 0 : 1, -one.details.fetch(:bytes, 0)] }
        end

        def figures = Tables.new(@owners, @loading, holders).to_h

        private

        def holders
          @holders ||= begin
            wanted = @addresses.select { |_, group| group.grows? || group.lazy? }
            @growths.each { |growth| wanted[growth.address] = growth }
            Holders.new(wanted).find
          end
        end

        def index_code
          @loads = @loading.loads.to_h { |load| [load.place, load] }
          @compiled = @loading.compiled.to_h { |one| [one.place, one] }
          @texts = @loading.compiled.to_h { |one| [one.path, one] }
          @definitions = @defined.to_h { |one| [[one.path, one.line], one] }
        end

        # @return [Loading::Load, Loading::Compiled, Definitions::Defined, nil] nil: objects
        # @return [Symbol] :vm for an inline cache and other objects without a cause
        def owner_of(group)
          return :vm if group.cache?

          @loading.load_of(group.file) || by_loader(group) || by_text(group) || by_method(group) || (:vm if group.code?)
        end

        # The code of a file is allocated in the frame of the loader, or of the requiring line if require is not written
        # in Ruby. Objects that a loader keeps for itself are attributed to the first load.
        def by_loader(group)
          return @loads[group.place] || @loading.loads.first if @places.loader?(group.file)

          @loads[group.place] if group.vm? && group.place == [group.file, group.line]
        end

        def by_text(group)
          known = @texts[group.file]
          return known if known && (group.code? || !group.file.end_with?(".rb"))

          @compiled[group.place] if group.code?
        end

        def by_method(group)
          known = @definitions[[group.file, group.line]] || @definitions[group.place]
          known if known && (group.code? || group.name == "Proc" || group.name.is_a?(Symbol))
        end
      end

      # Tables of all that stayed, of which the findings are the largest: by request, line, class, and loaded or
      # compiled code.
      class Tables
        ROWS = 50

        def initialize(owners, loading, holders)
          @owners = owners
          @loading = loading
          @holders = holders
        end

        def to_h
          { requests: requests, lines: lines, classes: classes, inline_caches: caches, loaded: loaded,
            compiled: compiled }
        end

        private

        def all = @all ||= @owners.values.flatten
        def objects = @owners.fetch(nil, [])

        # By request, the objects that are still alive, by sort.
        def requests
          caches, others = (all - objects).partition(&:cache?)
          (all.first&.objects || []).each_index.map do |window|
            { request: window + 1,
              objects: total(objects, :objects, window), bytes: total(objects, :bytes, window),
              code_bytes: total(others, :bytes, window), inline_caches: total(caches, :objects, window),
              files: files(window), compiled: @loading.compiled.count { |one| one.windows.include?(window) } }
          end
        end

        def files(window) = @loading.loads.sum { |load| load.window == window ? load.files.size : 0 }

        def total(groups, what, window) = groups.sum { |group| group.public_send(what)[window] }

        def lines
          top(objects) { |group| [group.place, group.file, group.line] }.map do |(place, file, line), groups|
            { place: place.join(":"), allocated: "#{file}:#{line}", classes: groups.map { |one| one.name.to_s }.uniq,
              held_by: groups.flat_map { |group| @holders.fetch(group, {}).keys.map(&:name) }.uniq.first(3),
              growing: groups.any?(&:grows?), **sums(groups) }
          end
        end

        def classes
          top(objects) { |group| group.name.to_s }.map { |name, groups| { class: name, **sums(groups) } }
        end

        def caches
          top(all.select(&:cache?)) { |group| [group.file, group.name] }.map do |(file, name), groups|
            { file: file, cache: name.to_s, **sums(groups) }
          end
        end

        def sums(groups) = { objects: groups.sum { |one| one.objects.sum }, bytes: bytes(groups) }
        def bytes(groups) = groups.sum { |one| one.bytes.sum }
        def top(groups, &key) = groups.group_by(&key).sort_by { |_, all| -bytes(all) }.first(ROWS)

        def loaded
          @loading.loads.map do |load|
            { path: load.path, request: load.window + 1, constant: load.constant, place: load.place&.join(":"),
              files: load.files.size, bytes: bytes(@owners.fetch(load, [])) }.compact
          end
        end

        def compiled
          @loading.compiled.map do |one|
            { path: one.path, line: one.line, place: one.place&.join(":"), requests: one.windows.map { |at| at + 1 },
              bytes: bytes(@owners.fetch(one, [])) }.compact
          end
        end
      end

      # Finds the names that keep objects alive: a constant, a module's instance or class variable, or an instance
      # variable of an object that one of these holds (a singleton).
      class Holders
        STEPS = 200_000 # objects followed from one holder
        VARIABLES, VARIABLE, NAME =
          %i[class_variables class_variable_get inspect].map { |name| Module.instance_method(name) }
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

          ForkSafety::Libraries::Constants.quietly { each_held { |holder| trace(holder, found) } }
          found
        end

        private

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
            # Ruby does not list private constants, but a module refers to their values.
            hidden = references(owner).reject { |object| seen[object] }
            hidden.each { |object| held("a private constant of #{title}", object, owner, nil, &block) }
          end
        end

        def each_member(owner, title)
          VARIABLES.bind_call(owner, false).each do |name|
            value = begin
              VARIABLE.bind_call(owner, name)
            rescue RuntimeError, NameError
              next # a superclass has the variable too, or it is gone
            end
            yield "#{title}.#{name}", value
          end
          INSTANCE_VARIABLES.bind_call(owner).each do |name|
            yield "#{title}.#{name}", INSTANCE_VARIABLE.bind_call(owner, name)
          end
          ForkSafety::Libraries::Constants.each(owner) do |name, value|
            yield owner.equal?(Object) ? name.name : "#{title}::#{name}", value, name
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
