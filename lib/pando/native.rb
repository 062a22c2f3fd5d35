# frozen_string_literal: true

require "pando/platform"

# Loads the C extension. A checkout keeps one build per Ruby version next to each other; an installed gem has a single
# one. It exists on Linux only.
begin
  require Pando::Platform.linux? ? "pando/#{RUBY_VERSION[/\A\d+\.\d+/]}/pando_ext" : "pando/portable"
rescue LoadError
  raise unless Pando::Platform.linux?

  begin
    require "pando/pando_ext"
  rescue LoadError => e
    raise e, "#{e.message}. Pando's extension is not compiled for this Ruby: install the gem, or run bin/compile " \
             "in the checkout", cause: nil
  end
end
