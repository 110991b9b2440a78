-- oi_wires.vhd: arithmetic on signed numbers of any width. The result has `w` bits: as many as it needs.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

package oi_wires is
  function oi_fit(a : signed; w : positive) return signed; -- its low bits, or copies of its sign before it
  function oi_add(a, b : signed; w : positive) return signed;
  function oi_sub(a, b : signed; w : positive) return signed;
  function oi_minus(a : signed; w : positive) return signed;
  function oi_product(a, b : signed; w : positive) return signed;
  function oi_left(a : signed; n : natural; w : positive) return signed;
  function oi_right(a : signed; n : natural; w : positive) return signed;
  -- modulo 2^n, as a signed or an unsigned number
  function oi_low(a : signed; n, w : positive) return signed;
  function oi_low_unsigned(a : signed; n, w : positive) return signed;
  function oi_plain(a : signed; n : positive) return unsigned;
  function oi_signed(a : unsigned; w : positive) return signed;
end package;

package body oi_wires is
  function oi_fit(a : signed; w : positive) return signed is
    variable v : signed(a'length - 1 downto 0);
  begin
    v := a;
    if w <= a'length then
      return v(w - 1 downto 0);
    end if;
    return resize(v, w);
  end function;

  function oi_add(a, b : signed; w : positive) return signed is
  begin
    return oi_fit(a, w) + oi_fit(b, w);
  end function;

  function oi_sub(a, b : signed; w : positive) return signed is
  begin
    return oi_fit(a, w) - oi_fit(b, w);
  end function;

  function oi_minus(a : signed; w : positive) return signed is
  begin
    return to_signed(0, w) - oi_fit(a, w);
  end function;

  function oi_product(a, b : signed; w : positive) return signed is
  begin
    return oi_fit(a * b, w);
  end function;

  function oi_left(a : signed; n : natural; w : positive) return signed is
    constant zeros : signed(n downto 0) := (others => '0');
  begin
    if n = 0 then
      return oi_fit(a, w);
    end if;
    return oi_fit(a & zeros(n - 1 downto 0), w);
  end function;

  function oi_right(a : signed; n : natural; w : positive) return signed is
    variable v : signed(a'length - 1 downto 0);
  begin
    v := a;
    if n >= a'length then
      return oi_fit(v(a'length - 1 downto a'length - 1), w);
    end if;
    return oi_fit(v(a'length - 1 downto n), w);
  end function;

  function oi_low(a : signed; n, w : positive) return signed is
  begin
    return oi_fit(oi_fit(a, n), w);
  end function;

  function oi_low_unsigned(a : signed; n, w : positive) return signed is
  begin
    return oi_signed(oi_plain(a, n), w);
  end function;

  function oi_plain(a : signed; n : positive) return unsigned is
  begin
    return unsigned(std_logic_vector(oi_fit(a, n)));
  end function;

  function oi_signed(a : unsigned; w : positive) return signed is
  begin
    return oi_fit(signed('0' & std_logic_vector(a)), w);
  end function;
end package body;
