"""The app: ``streamlit run app.py``, or ``roofline app`` after installation."""

from roofline.app.desk import main

if __name__ == "__main__":
    main()
