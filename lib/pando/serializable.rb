# frozen_string_literal: true

module Pando
  # For classes with facts that must survive an upgrade of the monitor. A class declares its instance variables, each
  # with its kind (see Upgrade::Record#read), or with the class of a part that is Serializable itself:
  #
  #     extend Serializable
  #     serialize size: :integer, ends_at: :number, state: %i[on off], backoff: Backoff
  #
  # A variable that is missing in the state keeps the value of #initialize.
  module Serializable
    def serialized = @serialized ||= {}

    def serialize(**fields)
      serialized.merge!(fields)
      include Methods
    end

    # For an owner (see Upgrade::State) that has a single record.
    def serialize_as(word, **fields)
      serialize(**fields)
      define_method(:to_state) { |state| state.add(word, **serialized_fields) }
      define_method(:from_state) { |state| state.any(word)&.then { |record| take_up(record) } }
    end

    # Methods of the objects.
    module Methods
      # @return [Hash{Symbol => Object}] for Upgrade::Document#add; the fields of a part are prefixed with its name
      def serialized_fields
        self.class.serialized.each_with_object({}) do |(name, kind), fields|
          value = instance_variable_get(:"@#{name}")
          next fields[name] = value unless kind.is_a?(Class)

          value.serialized_fields.each { |inner, one| fields[:"#{name}.#{inner}"] = one }
        end
      end

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
