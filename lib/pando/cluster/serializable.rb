# frozen_string_literal: true

module Pando
  module Cluster
    # For what has facts that must outlive an upgrade of the monitor. A class declares its instance variables,
    # each with its kind (see Upgrade::Record#read), or with the class of a part that is Serializable itself:
    #
    #     extend Serializable
    #     serialize size: :integer, ends_at: :number, state: %i[on off], backoff: Backoff
    #
    # A variable that a state does not have is left as #initialize made it.
    #
    # @api private
    module Serializable
      # @return [Hash{Symbol => Symbol, Array<Symbol>, Class}]
      def serialized = @serialized ||= {}

      def serialize(**fields)
        serialized.merge!(fields)
        include Methods
      end

      # Of an owner (see Upgrade::State) that has no more to say than this.
      # @param word [String] its record
      def serialize_as(word, **fields)
        serialize(**fields)
        define_method(:to_state) { |state| state.add(word, **serialized_fields) }
        define_method(:from_state) { |state| state.any(word)&.then { |record| take_up(record) } }
      end

      # In the objects.
      module Methods
        # @return [Hash{Symbol => Object}] for Upgrade::Document#add; a part's fields have its name before them
        def serialized_fields
          self.class.serialized.each_with_object({}) do |(name, kind), fields|
            value = instance_variable_get(:"@#{name}")
            next fields[name] = value unless kind.is_a?(Class)

            value.serialized_fields.each { |inner, one| fields[:"#{name}.#{inner}"] = one }
          end
        end

        # @param record [Upgrade::Record]
        # @raise [Upgrade::Unreadable]
        def take_up(record, prefix = "")
          self.class.serialized.each do |name, kind|
            next instance_variable_get(:"@#{name}").take_up(record, "#{prefix}#{name}.") if kind.is_a?(Class)

            value = record.read("#{prefix}#{name}", kind)
            instance_variable_set(:"@#{name}", value) unless value.nil?
          end
          self
        end
      end
    end
  end
end
