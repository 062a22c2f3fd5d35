# frozen_string_literal: true

# A small app that has nothing to gain from reforking: twenty routes, no data, warm after a few requests.

require "roda"

module Small
  NAMES = %w[ant bee cat dog eel fox gnu hen ibis jay kea lynx mole newt owl pig quail ram seal toad].freeze

  # The Rack app.
  class App < Roda
    plugin :json

    route do |r|
      r.get("up") { "up\n" }
      NAMES.each { |name| r.get(name, Integer) { |number| animal(name, number) } }
    end

    def animal(name, number)
      { name: name, number: number, squares: Array.new(10) { |index| (index + number)**2 },
        label: "#{name.capitalize} #{number}" }
    end
  end
end

run Small::App.freeze.app
