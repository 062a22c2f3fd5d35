# frozen_string_literal: true

module Pando
  class Config
    # What is looked at before and after a fork.
    Settings.group "Fork-safety" do
      setting :prepared_library,
              type: Types::Text.new("a gem's name", /\A[\w.-]{1,100}\z/), default: [].freeze, traits: %i[repeatable],
              help: "A library that needs something around forks, and gets it from your hooks. Repeatable.",
              notes: "It is no longer reported when the app has been loaded, see [libraries.md](libraries.md).",
              example: 'prepared_library "bunny"'
    end
  end
end
